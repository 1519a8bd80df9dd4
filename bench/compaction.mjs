// A compressor in JavaScript, in the manner of coding agents that keep a budget of recent text: it shows its model the
// older turns, and appends the files that were read and changed by code. `bench/mutants.py` edits this source and drives
// it over standard input and output, a JSON document a line: {messages} in, {ask} out, {reply} in, {messages} out.

import { createInterface } from "node:readline";

const KEEP_CHARS = 6000;
const OUTPUT_LIMIT = 3000;
const ARGUMENT_LIMIT = 1500;
const SUMMARY_CHARS = 8000;
const OPENING = "The conversation before this point was compacted into the following summary:";
const TEMPLATE = [
  ["Goal", "what the user is trying to accomplish"],
  ["Constraints & Preferences", "what the user required or ruled out"],
  ["Done", "completed work, with commands and results"],
  ["In Progress", "what is being worked on now"],
  ["Blocked", "errors, with their exact text"],
  ["Key Decisions", "each decision with its rationale"],
  ["Critical Context", "names, versions, hashes, links and numbers needed to go on"],
];

function textOf(message) {
  const content = message.content ?? "";
  return typeof content === "string" ? content : content.map((part) => part.text ?? "").join("\n");
}

function sizeOf(message) {
  return textOf(message).length + JSON.stringify(message.tool_calls ?? "").length;
}

function clip(text, limit) {
  return text.length <= limit ? text : `${text.slice(0, limit)} [${text.length - limit} more characters]`;
}

function serialise(messages) {
  const lines = [];
  for (const message of messages) {
    const text = message.role === "tool" ? clip(textOf(message), OUTPUT_LIMIT) : textOf(message);
    if (text) lines.push(`[${message.role}]: ${text}`);
    for (const call of message.tool_calls ?? []) {
      lines.push(`[call]: ${call.function.name}(${clip(call.function.arguments, ARGUMENT_LIMIT)})`);
    }
  }
  return lines.join("\n");
}

function cutPoint(messages) {
  let room = KEEP_CHARS;
  let at = messages.length;
  while (at > 1 && room - sizeOf(messages[at - 1]) >= 0) {
    at -= 1;
    room -= sizeOf(messages[at]);
  }
  while (at > 1 && at < messages.length && messages[at].role === "tool") at -= 1;
  return Math.min(at, messages.length - 1);
}

function collectFiles(messages, files) {
  for (const message of messages) {
    for (const call of message.tool_calls ?? []) {
      let path;
      try {
        path = JSON.parse(call.function.arguments).path;
      } catch {
        continue;
      }
      if (!path) continue;
      if (/write|patch|edit/.test(call.function.name)) files.modified.add(path);
      else if (/read/.test(call.function.name)) files.read.add(path);
    }
  }
  for (const path of files.modified) files.read.delete(path);
}

function tagged(tag, paths) {
  return paths.size ? `\n\n<${tag}>\n${[...paths].join("\n")}\n</${tag}>` : "";
}

class Compaction {
  constructor(complete) {
    this.complete = complete;
    this.previous = "";
    this.files = { read: new Set(), modified: new Set() };
  }

  async compress(messages) {
    const cut = cutPoint(messages);
    const older = messages.slice(1, cut).filter((message) => !textOf(message).startsWith(OPENING));
    if (older.length < 2) return messages;
    collectFiles(older, this.files);
    const headings = TEMPLATE.map(([title, guidance]) => `## ${title}\n<${guidance}>`).join("\n");
    let prompt = `Summarise the conversation. At most ${SUMMARY_CHARS} characters.\n\n${headings}\n\n`;
    if (this.previous) prompt += `PREVIOUS SUMMARY:\n${this.previous}\n\n`;
    prompt += `TURNS:\n${serialise(older)}`;
    const reply = await this.complete([{ role: "user", content: prompt }]);
    this.previous = reply;
    const lists = tagged("read-files", this.files.read) + tagged("modified-files", this.files.modified);
    const content = `${OPENING}\n\n<summary>\n${reply}${lists}\n</summary>`;
    return [messages[0], { role: "user", content }, ...messages.slice(cut)];
  }
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const next = async () => {
  const { value, done } = await lines.next();
  return done ? null : JSON.parse(value);
};
const compaction = new Compaction(async (request) => {
  say({ ask: request });
  return (await next()).reply;
});
for (let job = await next(); job; job = await next()) {
  try {
    say({ messages: await compaction.compress(job.messages) });
  } catch (error) {
    say({ error: String(error) });
  }
}
