// Mocha's own "spec", which besides writes what became of each test into a file, as jest does with --json:
// mocha --reporter mocha.cjs --reporter-option output=FILE. https://mochajs.org/next/reporters/third-party/
'use strict';

const fs = require('node:fs');
const path = require('node:path');

// Of the project that is tested, or else of the program that runs it.
const { reporters } = require(
  require.resolve('mocha', { paths: [process.cwd(), path.dirname(fs.realpathSync(process.argv[1]))] })
);

class Spec extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    const files = new Map();
    const add = (status) => (test) => {
      const name = test.file || (test.parent && test.parent.file) || '';
      const ancestorTitles = test.titlePath().slice(0, -1);
      if (!files.has(name)) files.set(name, []);
      files.get(name).push({ ancestorTitles, title: test.title, status });
    };
    runner.on('pass', add('passed'));
    runner.on('fail', add('failed'));
    runner.on('pending', add('pending'));
    runner.once('end', () => {
      const testResults = [...files].map(([name, assertionResults]) => ({ name, status: '', assertionResults }));
      fs.writeFileSync(options.reporterOptions.output, JSON.stringify({ testResults }));
    });
  }
}

module.exports = Spec;
