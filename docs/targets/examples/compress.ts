// A compressor in TypeScript: JSON lines in, JSON lines out. No dependencies, no build step.
// Node 22.18 and later run it as it is: `node compress.ts`. The types are written so that they can be stripped.
import { createInterface } from "node:readline";

type Message = {
  role: string;
  content?: unknown;
  tool_calls?: unknown[];
  tool_call_id?: string;
};
type Start = {
  type: "start";
  model: string;
  base_url: string;
  api_key: string;
};
type Compress = { type: "compress"; id: number; messages: Message[] };

const KEEP = 2; // newest messages that stay as they are
let start: Start | undefined;

async function summarise(messages: Message[]): Promise<string> {
  const transcript = messages
    .map((m) => `[${m.role}] ${m.content ?? JSON.stringify(m.tool_calls)}`)
    .join("\n\n");
  const response = await fetch(`${start?.base_url}/chat/completions`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${start?.api_key}`,
      "Content-Type": "application/json",
    },
    body: JSON.stringify({
      model: start?.model,
      messages: [
        {
          role: "user",
          content: `Summarise for a successor:\n\n${transcript}`,
        },
      ],
    }),
  });
  if (!response.ok) throw new Error(`the model answered ${response.status}`);
  const text: string = (await response.json()).choices[0].message.content;
  if (!text) throw new Error("the model answered with nothing");
  return text;
}

async function compress(messages: Message[]): Promise<Message[]> {
  if (messages.length === 0) throw new Error("there are no messages");
  const head = messages.filter((m) => m.role === "system");
  const rest = messages.filter((m) => m.role !== "system");
  let cut = Math.max(rest.length - KEEP, 0);
  while (cut > 0 && rest[cut]?.role === "tool") cut -= 1; // a tool's answer must not lose its call
  if (cut === 0) return messages;
  const summary = {
    role: "user",
    content: `Summary so far:\n${await summarise(rest.slice(0, cut))}`,
  };
  return [...head, summary, ...rest.slice(cut)];
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked: Start | Compress = JSON.parse(line);
  let answer: object;
  if (asked.type === "start") {
    start = asked;
    answer = { type: "ready", resumable: true };
  } else {
    try {
      answer = {
        type: "result",
        id: asked.id,
        messages: await compress(asked.messages),
      };
    } catch (error) {
      answer = { type: "error", id: asked.id, message: String(error) };
    }
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
