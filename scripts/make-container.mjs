// Makes a container in Azure's emulator: node make-container.mjs URL CONTAINER.
//
// The account and its key are those that every emulator has; they are published and open nothing.
import { createHmac } from "node:crypto";

const [url, container] = process.argv.slice(2);
const account = "devstoreaccount1";
const key = Buffer.from(
  "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/" +
    "K1SZFPTOtr/KBHBeksoGMGw==",
  "base64",
);
const headers = { "x-ms-date": new Date().toUTCString(), "x-ms-version": "2021-08-06" };
const named = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`);
// The account stands in the path twice: once as the emulator has it, once as the rule has it.
const resource = `/${account}/${account}/${container}\nrestype:container`;
const text = `PUT${"\n".repeat(12)}${named.join("")}${resource}`;
const signature = createHmac("sha256", key).update(text, "utf8").digest("base64");
const response = await fetch(`${url}/${account}/${container}?restype=container`, {
  method: "PUT",
  headers: { ...headers, authorization: `SharedKey ${account}:${signature}` },
});
if (response.status !== 201) {
  console.error(`${response.status}: ${await response.text()}`);
  process.exit(1);
}
