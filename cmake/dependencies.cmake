# Each dependency: the installed one first, else a pinned release checked against its hash.
include(FetchContent)
set(FETCHCONTENT_QUIET ON)
find_package(PkgConfig QUIET)

# --- RE2 -----------------------------------------------------------------------------------------
# 2023-03-01 is the last release without Abseil. Debian's static archive is not position-independent,
# so an installed RE2 is linked dynamically.
add_library(loki_re2 INTERFACE)
add_library(loki::re2 ALIAS loki_re2)
set(re2_FOUND OFF)
if(PkgConfig_FOUND)
  pkg_check_modules(re2 QUIET IMPORTED_TARGET re2)
endif()
if(re2_FOUND)
  target_link_libraries(loki_re2 INTERFACE PkgConfig::re2)
else()
  message(STATUS "loki: RE2 is not installed; fetching 2023-03-01")
  set(RE2_BUILD_TESTING OFF CACHE BOOL "" FORCE)
  FetchContent_Declare(re2
    URL https://github.com/google/re2/archive/refs/tags/2023-03-01.tar.gz
    URL_HASH SHA256=7a9a4824958586980926a300b4717202485c4b4115ac031822e29aa4ef207e48)
  FetchContent_GetProperties(re2)
  FetchContent_MakeAvailable(re2)
  target_link_libraries(loki_re2 INTERFACE re2::re2)
endif()

# --- xxHash (header only: XXH_INLINE_ALL) ----------------------------------------------------------
add_library(loki_xxhash INTERFACE)
add_library(loki::xxhash ALIAS loki_xxhash)
find_path(XXHASH_INCLUDE_DIR xxhash.h)
if(NOT XXHASH_INCLUDE_DIR)
  message(STATUS "loki: xxHash is not installed; fetching 0.8.2")
  FetchContent_Declare(xxhash
    URL https://github.com/Cyan4973/xxHash/archive/refs/tags/v0.8.2.tar.gz
    URL_HASH SHA256=baee0c6afd4f03165de7a4e67988d16f0f2b257b51d0e3cb91909302a26a79c4
    SOURCE_SUBDIR no-cmake)
  FetchContent_MakeAvailable(xxhash)
  set(XXHASH_INCLUDE_DIR ${xxhash_SOURCE_DIR})
endif()
target_include_directories(loki_xxhash SYSTEM INTERFACE ${XXHASH_INCLUDE_DIR})

# --- nlohmann/json ---------------------------------------------------------------------------------
add_library(loki_json INTERFACE)
add_library(loki::json ALIAS loki_json)
find_package(nlohmann_json 3.10 QUIET)
if(NOT nlohmann_json_FOUND)
  message(STATUS "loki: nlohmann/json is not installed; fetching 3.11.3")
  FetchContent_Declare(nlohmann_json
    URL https://github.com/nlohmann/json/releases/download/v3.11.3/json.tar.xz
    URL_HASH SHA256=d6c65aca6b1ed68e7a182f4757257b107ae403032760ed6ef121c9d55e81757d)
  FetchContent_MakeAvailable(nlohmann_json)
endif()
target_link_libraries(loki_json INTERFACE nlohmann_json::nlohmann_json)

# --- GoogleTest (only for the C++ tests) -------------------------------------------------------------
if(LOKI_BUILD_TESTS)
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    message(STATUS "loki: GoogleTest is not installed; fetching 1.14.0")
    set(INSTALL_GTEST OFF CACHE BOOL "" FORCE)
    FetchContent_Declare(googletest
      URL https://github.com/google/googletest/archive/refs/tags/v1.14.0.tar.gz
      URL_HASH SHA256=8ad598c73ad796e0d8280b082cebd82a630d73e73cd3c70057938a6501bba5d7)
    FetchContent_MakeAvailable(googletest)
  endif()
endif()
