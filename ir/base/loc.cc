#include "ir/base/loc.h"

#include <mutex>
#include <set>

#include "absl/strings/str_cat.h"

namespace agc {

std::string ToString(Loc loc) { return loc.line == 0 ? std::string(loc.file) : absl::StrCat(loc.file, ":", loc.line); }

absl::string_view Intern(absl::string_view text) {
  static std::mutex& mutex = *new std::mutex;
  static std::set<std::string, std::less<>>& texts = *new std::set<std::string, std::less<>>;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto it = texts.find(std::string(text));
  return it != texts.end() ? *it : *texts.insert(std::string(text)).first;
}

absl::Status ErrorAt(Loc loc, absl::string_view message, absl::StatusCode code) {
  const std::string place = ToString(loc);
  return absl::Status(code, absl::StrCat(place, place.empty() ? "" : ": ", "error: ", message));
}

absl::Status WithNote(const absl::Status& status, absl::string_view note, Loc loc) {
  const std::string place = ToString(loc);
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "\n", place, place.empty() ? "" : ": ", "note: ", note));
}

}  // namespace agc
