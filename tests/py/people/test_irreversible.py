"""Which commands cannot be taken back."""

from __future__ import annotations

import shlex

import pytest
import yaml

from loki.people.approval import FILE, irreversible

YES = """
rm -rf /var/lib/data -> remove-outside
rm ../other/x -> remove-outside
rm -rf ~/x -> remove-outside
rm -r $HOME/x -> remove-outside
rm -rf src/../../x -> remove-outside
sudo rm -rf / -> remove-outside
env A=1 nice -n 5 rm /x -> remove-outside
A=1 rm /x -> remove-outside
sh -c 'cd build && rm -rf /srv' -> remove-outside
bash -lc "echo 1; git push -f" -> force-push
dd if=x of=/dev/sda -> wipe
mkfs.ext4 /dev/sda1 -> wipe
git push --force origin main -> force-push
git push --force-with-lease=main -> force-push
git push origin :gone -> force-push
git push origin +main -> force-push
git branch -D topic -> lost-history
git stash drop -> lost-history
git clean -fdx -> lost-files
psql -c "DROP   TABLE users" -> database-drop
sqlite3 app.db 'delete from users' -> database-drop
dropdb app -> database-drop
redis-cli FLUSHALL -> database-drop
bundle exec rails db:drop -> database-drop
python manage.py flush --no-input -> database-drop
npx prisma migrate reset --force -> database-drop
npm publish -> publish
/usr/bin/npm publish --access public -> publish
python3 -m twine upload dist/* -> publish
uv run twine upload dist/x.whl -> publish
uv run --with twine --frozen twine upload dist/x.whl -> publish
cargo publish -> publish
mvn deploy -> publish
docker push registry/x -> publish
gh release create v1 -> publish
kubectl delete pod x -> deploy
terraform apply -auto-approve -> deploy
fly deploy -> deploy
make deploy -> deploy
npm run deploy -> deploy
aws s3 rm s3://bucket/key -> deploy
timeout 5m ssh ann@host reboot -> deploy
docker compose down -v -> containers
"""

NO = """
rm -rf build
rm ./a.py
rm /project/build/x
pytest -q
git push origin main
git push --force --dry-run
git branch -d merged
git clean -fd
git clean -fd --exclude=build
npm publish --dry-run
npm test
cargo build --release
make release-notes
terraform plan
kubectl get pods
kubectl apply -f x.yml --dry-run=client
psql -c "select 1"
psql -c "select truncated from log"
docker build .
sh -c 'rm -rf build'
sh -c "unclosed ' quote rm /x"
python -m pytest -k deploy
echo rm -rf /
grep -rn "DROP TABLE" .
gradle publishToMavenLocal
rsync -n a b
"""


@pytest.mark.parametrize("line", YES.strip().splitlines())
def test_it_cannot_be_taken_back(line: str) -> None:
    command, _, expected = line.rpartition(" -> ")
    found = irreversible(shlex.split(command), "/project")
    assert found is not None
    assert found.id == expected
    assert found.why


@pytest.mark.parametrize("line", NO.strip().splitlines())
def test_it_can_or_is_none_of_these(line: str) -> None:
    words = line.split() if "unclosed" in line else shlex.split(line)
    assert irreversible(words, "/project") is None


@pytest.mark.parametrize("command", [[], [""], ["sudo"], ["A=1"], ["sh", "-c"], ["rm"]])
def test_what_is_no_whole_command_is_nothing(command: list[str]) -> None:
    assert irreversible(command) is None


def test_shells_in_shells_end_somewhere() -> None:
    words = ["sh", "-c", "true"]
    for _ in range(200):
        words = ["sh", "-c", shlex.join(words)] if len(str(words)) < 100_000 else words
    assert irreversible(words) is None
    assert irreversible(["sudo"] * 200_000) is None


def test_every_entry_says_why_and_can_hold() -> None:
    entries = yaml.safe_load(FILE.read_text("utf-8"))["operations"]
    assert all(entry["why"] and entry["id"] and entry["programs"] for entry in entries)
