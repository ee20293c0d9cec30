#include "report/web/page.h"

#include <cstddef>
#include <string_view>

#include <nlohmann/json.hpp>

// The bundle, as the assembler takes it in: no string literal of half a megabyte for the compiler.
__asm__(
    ".section .rodata\n"
    "ranklab_page_script_begin: .incbin \"" RANKLAB_PAGE_SCRIPT
    "\"\n"
    "ranklab_page_script_end: .byte 0\n"
    "ranklab_page_style_begin: .incbin \"" RANKLAB_PAGE_STYLE
    "\"\n"
    "ranklab_page_style_end: .byte 0\n"
    ".previous\n");

extern "C" {
extern const char ranklab_page_script_begin[];
extern const char ranklab_page_script_end[];
extern const char ranklab_page_style_begin[];
extern const char ranklab_page_style_end[];
}

namespace ranklab::report {
namespace {

using nlohmann::json;

std::string_view Script() {
  return {ranklab_page_script_begin,
          static_cast<std::size_t>(ranklab_page_script_end - ranklab_page_script_begin)};
}

std::string_view Style() {
  return {ranklab_page_style_begin,
          static_cast<std::size_t>(ranklab_page_style_end - ranklab_page_style_begin)};
}

json ToJson(const Timeline& timeline) {
  json steps = json::array();
  for (const StepLine& step : timeline.steps) {
    steps.push_back({{"rank", step.rank},
                     {"step", step.step},
                     {"begins", step.begins},
                     {"input", step.input},
                     {"forward", step.forward},
                     {"backward", step.backward},
                     {"exposed", step.exposed},
                     {"optimizer", step.optimizer},
                     {"total", step.total}});
  }
  return {{"part", timeline.part}, {"cell", timeline.cell}, {"steps", std::move(steps)}};
}

json ToJson(const TraceFolder& traces) {
  return {{"part", traces.part},
          {"cell", traces.cell},
          {"folder", traces.folder},
          {"ranks", traces.ranks}};
}

template <typename T>
json ListOf(std::span<const T> values) {
  json list = json::array();
  for (const T& value : values) {
    list.push_back(ToJson(value));
  }
  return list;
}

// JSON inside a script element ends at the first "</": JSON's own escape for "<" keeps any text of
// the lab inside its string.
std::string ForScriptElement(const json& value) {
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      escaped += "\\u003c";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

bool PageHasCharts() { return !Script().empty(); }

std::string RenderPage(const experiment::RunSummary& summary, std::span<const Timeline> timelines,
                       std::span<const TraceFolder> traces) {
  const json run = {{"summary", json::parse(experiment::ToJson(summary))},
                    {"timelines", ListOf(timelines)},
                    {"traces", ListOf(traces)}};
  std::string page =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>ranklab report</title>\n<style>";
  page += Style();
  page +=
      "</style>\n</head>\n<body>\n<noscript>This page draws with JavaScript; the figures are in "
      "table.md and summary.json beside it.</noscript>\n";
  page += "<script id=\"run\" type=\"application/json\">" + ForScriptElement(run) + "</script>\n";
  if (PageHasCharts()) {
    page += "<script>";
    page += Script();
    page += "</script>\n";
  } else {
    page +=
        "<p>This ranklab was built without npm, so this page has no charts. Install npm, build "
        "again, and run <code>ranklab report</code> on this folder. The figures are in table.md "
        "and summary.json beside this page.</p>\n";
  }
  page += "</body>\n</html>\n";
  return page;
}

}  // namespace ranklab::report
