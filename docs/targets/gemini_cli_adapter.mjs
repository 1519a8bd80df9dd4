// gemini-cli-core: resume the session as a chat of its client, force a compression, read the history back.
import { createInterface } from "node:readline";
import { randomUUID } from "node:crypto";

const write = process.stdout.write.bind(process.stdout);
// It logs to standard output, which belongs to the contract's lines.
process.stdout.write = (...words) => process.stderr.write(...words);
for (const name of ["log", "info", "debug", "warn"]) console[name] = (...words) => console.error(...words);

const { AuthType, Config } = await import(`${process.env.RUNTIME}/node_modules/@google/gemini-cli-core/dist/index.js`);

const textOf = (content) =>
  Array.isArray(content) ? content.map((part) => (typeof part === "string" ? part : (part.text ?? ""))).join("\n") : (content ?? "");

function toContents(messages) {
  const names = {};
  const contents = [];
  for (const message of messages) {
    const parts = [];
    if (message.role === "tool") {
      const name = names[message.tool_call_id] ?? "tool";
      parts.push({ functionResponse: { id: message.tool_call_id, name, response: { output: textOf(message.content) } } });
    } else if (textOf(message.content)) {
      parts.push({ text: textOf(message.content) });
    }
    for (const call of message.tool_calls ?? []) {
      names[call.id] = call.function.name;
      parts.push({ functionCall: { id: call.id, name: call.function.name, args: JSON.parse(call.function.arguments || "{}") } });
    }
    const role = message.role === "assistant" ? "model" : "user";
    // The answers to the calls of one turn are one content.
    const last = contents.at(-1);
    if (message.role === "tool" && last?.role === "user" && last.parts[0]?.functionResponse) last.parts.push(...parts);
    else if (parts.length) contents.push({ role, parts });
  }
  return contents;
}

function toMessages(contents) {
  const messages = [];
  const open = [];
  for (const { role, parts } of contents) {
    const said = parts.filter((part) => part.text && !part.thought).map((part) => part.text).join("\n");
    // It puts a description of the machine in front of every chat, as others do with a system prompt.
    const text = said.replace(/^<session_context>[\s\S]*?<\/session_context>\n?/, "");
    const calls = parts.filter((part) => part.functionCall).map(({ functionCall: call }, index) => {
      const id = call.id ?? `call-${messages.length}-${index}`;
      open.push([call.name, id]);
      return { id, type: "function", function: { name: call.name, arguments: JSON.stringify(call.args ?? {}) } };
    });
    for (const { functionResponse: answer } of parts.filter((part) => part.functionResponse)) {
      const at = open.findIndex(([name, id]) => id === answer.id || (!answer.id && name === answer.name));
      if (at < 0) continue;
      const [[, id]] = open.splice(at, 1);
      messages.push({ role: "tool", tool_call_id: id, content: answer.response?.output ?? JSON.stringify(answer.response) });
    }
    if (text || calls.length)
      messages.push({ role: role === "model" ? "assistant" : "user", content: text || null, ...(calls.length ? { tool_calls: calls } : {}) });
  }
  return messages;
}

let client;

async function start() {
  const folder = `${process.env.HOME}/work`;
  (await import("node:fs")).mkdirSync(folder, { recursive: true });
  process.chdir(folder);
  const config = new Config({
    sessionId: randomUUID(),
    clientVersion: "1",
    targetDir: folder,
    cwd: folder,
    debugMode: false,
    model: "gemini-2.5-pro",
    usageStatisticsEnabled: false,
    telemetry: { enabled: false },
    coreTools: [],
    interactive: false,
  });
  await config.initialize();
  await config.refreshAuth(AuthType.USE_GEMINI);
  client = config.getGeminiClient();
  if (!client.isInitialized?.()) await client.initialize();
}

async function compress(messages) {
  if (messages.length === 0) throw new Error("there are no messages");
  const isSystem = (message) => message.role === "system" || message.role === "developer";
  const rest = messages.filter((message) => !isSystem(message));
  // Resumed anew each time: it counts tokens when a chat is resumed, and takes a longer history for a failure otherwise.
  await client.resumeChat(toContents(rest));
  const info = await client.tryCompressChat(randomUUID(), true);
  const state = toMessages(await client.getHistory());
  // 1 is COMPRESSED; the others are failures that it does not raise.
  if (info.compressionStatus !== 1) throw new Error(`gemini: compressionStatus ${info.compressionStatus}`);
  return [...messages.filter(isSystem), ...state];
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  let answer;
  try {
    if (asked.type === "start") {
      await start();
      answer = { type: "ready" };
    } else if (asked.type === "compress") {
      answer = { type: "result", id: asked.id, messages: await compress(asked.messages) };
    } else throw new Error(`unknown line ${asked.type}`);
  } catch (error) {
    answer = { type: "error", id: asked.id ?? null, message: String(error?.stack ?? error) };
  }
  write(JSON.stringify(answer) + "\n");
}
process.exit(0);
