// The one file that knows pugixml.
#include "collectives/msccl/xml.h"

#include <charconv>
#include <limits>
#include <sstream>

#include <pugixml.hpp>

#include "core/status.h"

namespace ranklab::collectives {
namespace {

constexpr std::int32_t kMostGpus = 1024;
constexpr std::int32_t kMostChunks = 1 << 20;

// Reads attributes of one element; keeps the first mistake.
class Attributes {
 public:
  Attributes(const pugi::xml_node& node, std::string place)
      : node_(node), place_(std::move(place)) {}

  // Without a `fallback` the attribute must be there.
  template <typename T>
  T Integer(const char* name, std::int64_t least, std::int64_t most, const T* fallback = nullptr) {
    const pugi::xml_attribute attribute = node_.attribute(name);
    if (!attribute && fallback != nullptr) {
      return *fallback;
    }
    const std::string_view text = attribute.value();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (!attribute || error != std::errc() || end != text.data() + text.size() || value < least ||
        value > most) {
      Fail(absl::StrFormat("%s is \"%s\"; a whole number, %d to %d", name, text, least, most));
      return static_cast<T>(least);
    }
    return static_cast<T>(value);
  }

  std::string Text(const char* name) {
    const pugi::xml_attribute attribute = node_.attribute(name);
    if (!attribute) {
      Fail(absl::StrFormat("%s is missing", name));
    }
    return attribute.value();
  }

  MscclBuffer Buffer(const char* name) {
    const std::string text = Text(name);
    if (text != "i" && text != "o" && text != "s") {
      Fail(absl::StrFormat("%s is \"%s\"; one of i, o, s", name, text));
      return MscclBuffer::kInput;
    }
    return static_cast<MscclBuffer>(text[0]);
  }

  void Fail(const std::string& what) {
    if (status_.ok()) {
      status_ = InvalidArgument("%s: %s", place_, what);
    }
  }
  const absl::Status& status() const { return status_; }

 private:
  const pugi::xml_node& node_;
  std::string place_;
  absl::Status status_;
};

absl::StatusOr<MscclStep> ReadStep(const pugi::xml_node& node, const MscclPlace& place) {
  constexpr std::int64_t kMost = kMostChunks;
  Attributes attributes(node, NameOf(place));
  if (attributes.Integer<int>("s", 0, kMost) != place.step && attributes.status().ok()) {
    attributes.Fail("its s is out of order");
  }
  MscclStep step;
  const std::string type = attributes.Text("type");
  bool known = false;
  for (int i = 0; i < kMscclStepTypes && !known; ++i) {
    step.type = static_cast<MscclStepType>(i);
    known = NameOf(step.type) == type;
  }
  if (!known) {
    attributes.Fail(
        absl::StrFormat("type is \"%s\"; one of s, r, cpy, re, rcs, rrs, rrc, rrcs, nop", type));
  }
  step.source = attributes.Buffer("srcbuf");
  step.source_offset = attributes.Integer<std::int32_t>("srcoff", -1, kMost);
  step.destination = attributes.Buffer("dstbuf");
  step.destination_offset = attributes.Integer<std::int32_t>("dstoff", -1, kMost);
  step.count = attributes.Integer<std::int32_t>("cnt", 0, kMost);
  step.after_threadblock = attributes.Integer<std::int32_t>("depid", -1, kMost);
  step.after_step = attributes.Integer<std::int32_t>("deps", -1, kMost);
  step.is_waited_for = attributes.Integer<int>("hasdep", 0, 1) == 1;
  RETURN_IF_ERROR(attributes.status());
  return step;
}

absl::Status CheckName(const pugi::xml_node& node, std::string_view wanted,
                       const std::string& parent) {
  if (node.name() != wanted) {
    return InvalidArgument("%s: unexpected element <%s>; only <%s> may stand here", parent,
                           node.name(), wanted);
  }
  return absl::OkStatus();
}

absl::StatusOr<MscclThreadblock> ReadThreadblock(const pugi::xml_node& node, MscclPlace place) {
  const std::string name = absl::StrFormat("gpu %d, threadblock %d", place.gpu, place.threadblock);
  Attributes attributes(node, name);
  if (attributes.Integer<int>("id", 0, kMostChunks) != place.threadblock &&
      attributes.status().ok()) {
    attributes.Fail("its id is out of order");
  }
  MscclThreadblock threadblock;
  threadblock.send = attributes.Integer<Rank>("send", -1, kMostGpus);
  threadblock.recv = attributes.Integer<Rank>("recv", -1, kMostGpus);
  threadblock.channel = attributes.Integer<std::int32_t>("chan", 0, kMostGpus);
  RETURN_IF_ERROR(attributes.status());
  for (const pugi::xml_node& child : node.children()) {
    RETURN_IF_ERROR(CheckName(child, "step", name));
    ASSIGN_OR_RETURN(const MscclStep step, ReadStep(child, place));
    threadblock.steps.push_back(step);
    ++place.step;
  }
  return threadblock;
}

absl::StatusOr<MscclGpu> ReadGpu(const pugi::xml_node& node, Rank id) {
  const std::string name = absl::StrFormat("gpu %d", id);
  Attributes attributes(node, name);
  if (attributes.Integer<int>("id", 0, kMostGpus) != id && attributes.status().ok()) {
    attributes.Fail("its id is out of order");
  }
  MscclGpu gpu;
  gpu.input_chunks = attributes.Integer<std::int32_t>("i_chunks", 0, kMostChunks);
  gpu.output_chunks = attributes.Integer<std::int32_t>("o_chunks", 0, kMostChunks);
  gpu.scratch_chunks = attributes.Integer<std::int32_t>("s_chunks", 0, kMostChunks);
  RETURN_IF_ERROR(attributes.status());
  for (const pugi::xml_node& child : node.children()) {
    RETURN_IF_ERROR(CheckName(child, "tb", name));
    const auto threadblock = static_cast<std::int32_t>(gpu.threadblocks.size());
    ASSIGN_OR_RETURN(MscclThreadblock read,
                     ReadThreadblock(child, {.gpu = id, .threadblock = threadblock}));
    gpu.threadblocks.push_back(std::move(read));
  }
  return gpu;
}

absl::StatusOr<MscclProgram> ReadProgram(const pugi::xml_node& node) {
  const std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max();
  const std::int64_t no_limit = 0;
  Attributes attributes(node, "algo");
  MscclProgram program;
  program.name = attributes.Text("name");
  program.collective = attributes.Text("coll");
  program.protocol = attributes.Text("proto");
  program.channels = attributes.Integer<std::int32_t>("nchannels", 1, kMostGpus);
  program.chunks_per_loop = attributes.Integer<std::int32_t>("nchunksperloop", 1, kMostChunks);
  const int in_place_unsaid = 0;
  program.in_place = attributes.Integer<int>("inplace", 0, 1, &in_place_unsaid) == 1;
  const int out_of_place_unsaid = program.in_place ? 0 : 1;
  program.out_of_place = attributes.Integer<int>("outofplace", 0, 1, &out_of_place_unsaid) == 1;
  program.min_bytes = attributes.Integer<std::int64_t>("minBytes", 0, most_bytes, &no_limit);
  program.max_bytes = attributes.Integer<std::int64_t>("maxBytes", 0, most_bytes, &no_limit);
  const auto gpus = attributes.Integer<std::int32_t>("ngpus", 1, kMostGpus);
  if (!program.in_place && !program.out_of_place) {
    attributes.Fail("neither inplace nor outofplace");
  }
  RETURN_IF_ERROR(attributes.status());
  for (const pugi::xml_node& child : node.children()) {
    RETURN_IF_ERROR(CheckName(child, "gpu", "algo"));
    ASSIGN_OR_RETURN(MscclGpu gpu, ReadGpu(child, static_cast<Rank>(program.gpus.size())));
    program.gpus.push_back(std::move(gpu));
  }
  if (program.gpus.size() != static_cast<std::size_t>(gpus)) {
    return InvalidArgument("algo: ngpus is %d, but there are %d gpus", gpus, program.gpus.size());
  }
  return program;
}

void WriteStep(pugi::xml_node node, std::size_t number, const MscclStep& step) {
  const char source[] = {static_cast<char>(step.source), '\0'};
  const char destination[] = {static_cast<char>(step.destination), '\0'};
  node.append_attribute("s") = static_cast<int>(number);
  node.append_attribute("type") = std::string(NameOf(step.type)).c_str();
  node.append_attribute("srcbuf") = source;
  node.append_attribute("srcoff") = step.source_offset;
  node.append_attribute("dstbuf") = destination;
  node.append_attribute("dstoff") = step.destination_offset;
  node.append_attribute("cnt") = step.count;
  node.append_attribute("depid") = step.after_threadblock;
  node.append_attribute("deps") = step.after_step;
  node.append_attribute("hasdep") = step.is_waited_for ? 1 : 0;
}

void WriteGpu(pugi::xml_node node, std::size_t id, const MscclGpu& gpu) {
  node.append_attribute("id") = static_cast<int>(id);
  node.append_attribute("i_chunks") = gpu.input_chunks;
  node.append_attribute("o_chunks") = gpu.output_chunks;
  node.append_attribute("s_chunks") = gpu.scratch_chunks;
  for (std::size_t t = 0; t < gpu.threadblocks.size(); ++t) {
    const MscclThreadblock& threadblock = gpu.threadblocks[t];
    pugi::xml_node child = node.append_child("tb");
    child.append_attribute("id") = static_cast<int>(t);
    child.append_attribute("send") = threadblock.send;
    child.append_attribute("recv") = threadblock.recv;
    child.append_attribute("chan") = threadblock.channel;
    for (std::size_t s = 0; s < threadblock.steps.size(); ++s) {
      WriteStep(child.append_child("step"), s, threadblock.steps[s]);
    }
  }
}

}  // namespace

absl::StatusOr<MscclProgram> ReadMscclXml(std::string_view text) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  if (!parsed) {
    return InvalidArgument("not XML at byte %d: %s", parsed.offset, parsed.description());
  }
  const pugi::xml_node root = document.document_element();
  RETURN_IF_ERROR(CheckName(root, "algo", "an MSCCL program"));
  return ReadProgram(root);
}

std::string WriteMscclXml(const MscclProgram& program) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("algo");
  root.append_attribute("name") = program.name.c_str();
  root.append_attribute("proto") = program.protocol.c_str();
  root.append_attribute("nchannels") = program.channels;
  root.append_attribute("nchunksperloop") = program.chunks_per_loop;
  root.append_attribute("ngpus") = static_cast<int>(program.gpus.size());
  root.append_attribute("coll") = program.collective.c_str();
  root.append_attribute("inplace") = program.in_place ? 1 : 0;
  root.append_attribute("outofplace") = program.out_of_place ? 1 : 0;
  root.append_attribute("minBytes") = static_cast<long long>(program.min_bytes);
  root.append_attribute("maxBytes") = static_cast<long long>(program.max_bytes);
  for (std::size_t id = 0; id < program.gpus.size(); ++id) {
    WriteGpu(root.append_child("gpu"), id, program.gpus[id]);
  }
  std::ostringstream text;
  document.save(text, "  ", pugi::format_indent | pugi::format_no_declaration);
  return text.str();
}

}  // namespace ranklab::collectives
