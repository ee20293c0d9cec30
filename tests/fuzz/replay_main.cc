// Runs a fuzz target over the files of its corpus: what a fuzzer once found stays found.
//   lab_reader_replay FOLDER...
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i], error)) {
      if (!entry.is_regular_file(error)) {
        continue;
      }
      std::ifstream file(entry.path(), std::ios::binary);
      const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
      const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
      std::printf("%s (%zu bytes)\n", entry.path().c_str(), input.size());
      std::fflush(stdout);  // a crash must not hide the name
      LLVMFuzzerTestOneInput(input.data(), input.size());
      ++files;
    }
  }
  if (files == 0) {
    std::fprintf(stderr, "no corpus file found\n");
    return 1;
  }
  return 0;
}
