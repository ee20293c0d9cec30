#include "report/atomic_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include "core/status.h"

namespace ranklab::report {
namespace {

absl::Status SystemError(std::string_view doing, const std::string& path) {
  return Unavailable("%s %s: %s", doing, path, std::strerror(errno));
}

// Closes on every path; Close says whether the bytes are safe.
class File {
 public:
  File(std::string path, int flags)
      : path_(std::move(path)), descriptor_(open(path_.c_str(), flags | O_CLOEXEC, 0644)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) {
      close(descriptor_);
    }
  }

  absl::Status Write(std::string_view text) const {
    if (descriptor_ < 0) {
      return SystemError("cannot open", path_);
    }
    while (!text.empty()) {
      const ssize_t written = write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) {
        continue;
      }
      if (written < 0) {
        return SystemError("cannot write", path_);
      }
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Sync() const {
    return descriptor_ >= 0 && fsync(descriptor_) == 0 ? absl::OkStatus()
                                                       : SystemError("cannot sync", path_);
  }

 private:
  std::string path_;
  int descriptor_;
};

}  // namespace

absl::Status WriteWhole(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".part";
  {
    const File file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    RETURN_IF_ERROR(file.Write(text));
    RETURN_IF_ERROR(file.Sync());
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    return SystemError("cannot rename to", path);
  }
  // The new name itself is safe once its folder is.
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return File(folder.empty() ? "." : folder.string(), O_RDONLY | O_DIRECTORY).Sync();
}

absl::Status Append(const std::string& path, std::string_view text) {
  return File(path, O_WRONLY | O_CREAT | O_APPEND).Write(text);
}

}  // namespace ranklab::report
