// docker/kubernetes.yaml against the published schemas of its kinds, and against what the program takes.
//   node kubernetes_test.mjs MODULES FILE PROGRAM
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [modules, file, program] = process.argv.slice(2);
const require = createRequire(`${modules}/package.json`);
const { parseAllDocuments } = require("yaml");

function validate(object) {
  const [group, version] = object.apiVersion.includes("/") ? object.apiVersion.split("/") : ["", object.apiVersion];
  const kinds = require(`kubernetes-models/${group ? group + "/" : ""}${version}`);
  if (!(object.kind in kinds)) throw new Error(`no kind ${object.kind} in ${object.apiVersion}`);
  new kinds[object.kind](object).validate();
}

const objects = parseAllDocuments(readFileSync(file, "utf8")).map((document) => {
  if (document.errors.length > 0) throw document.errors[0];
  return document.toJS();
});
for (const object of objects) validate(object);

// A check that cannot fail is none: the same objects with one mistake each.
for (const object of objects) {
  const wrong = structuredClone(object);
  wrong.spec = { ...wrong.spec, ...(wrong.kind === "Service" ? { ports: "7070" } : { template: { spec: { containers: [{ image: 1 }] } } }) };
  let refused = false;
  try {
    validate(wrong);
  } catch {
    refused = true;
  }
  if (!refused) throw new Error(`a wrong ${object.kind} passed`);
}

// Every flag that a container is given is one of the command's.
for (const object of objects.filter(({ kind }) => kind !== "Service")) {
  for (const container of object.spec.template.spec.containers) {
    const help = execFileSync(program, [container.args[0], "--help"], { encoding: "utf8" });
    for (const flag of container.args.filter((word) => word.startsWith("--"))) {
      if (!help.includes(flag)) throw new Error(`ranklab ${container.args[0]} has no ${flag}`);
    }
    if (container.securityContext.allowPrivilegeEscalation !== false || !object.spec.template.spec.securityContext.runAsNonRoot) {
      throw new Error(`${object.metadata.name} may become root`);
    }
  }
}
console.log(`${objects.length} objects are what their schemas say`);
