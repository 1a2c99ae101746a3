// A memory for pi. This file only passes pi's events on to `om hook pi`, and its answers back; see om-hook(1).
import { spawn } from "node:child_process";

const OM = __OM__;
const HOOK_MS = 5_000;
const COMPACT_MS = 60_000; // a model may be asked
const SECTION = "om_memory";

/** Run om and return what it prints, or "" if it fails, takes too long or is aborted. */
function run(args, input, { cwd, milliseconds, signal }) {
  return new Promise((resolve) => {
    const parts = [];
    const child = spawn(OM, args, { cwd, stdio: ["pipe", "pipe", "ignore"] });
    const end = (text) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      resolve(text);
    };
    const stop = () => {
      child.kill("SIGKILL");
      end("");
    };
    const timer = setTimeout(stop, milliseconds);
    signal?.addEventListener("abort", stop);
    child.on("error", () => end(""));
    child.on("close", (code) => end(code === 0 ? Buffer.concat(parts).toString("utf8") : ""));
    child.stdout.on("data", (part) => parts.push(part));
    child.stdin.on("error", () => {}); // om need not read to the end
    child.stdin.end(JSON.stringify(input));
  });
}

/** Return the object that om prints, or an empty one. */
async function ask(args, input, limits) {
  try {
    return JSON.parse(await run(args, input, limits)) ?? {};
  } catch {
    return {};
  }
}

/** Return true if a compaction has the summary of `om compact`. */
const isOurs = (compaction) => compaction?.details?.type === "observational-memory";

export default function (pi) {
  if (process.env.OM_WORKER) return; // om itself runs this agent

  let source = "startup";
  let memory; // undefined: to be asked for
  let isSection = false;

  const hook = (event, ctx, more = {}) => {
    const session = ctx.sessionManager;
    const place = { session_id: session.getSessionId(), transcript_path: session.getSessionFile() ?? null, cwd: ctx.cwd };
    return ask(["hook", "pi"], { hook_event_name: event, ...place, ...more }, { cwd: ctx.cwd, milliseconds: HOOK_MS });
  };

  pi.on("session_start", async (event, ctx) => {
    const branch = ctx.sessionManager.getBranch();
    const compaction = branch.findLast((entry) => entry.type === "compaction");
    const isNew = !branch.some((entry) => entry.type === "message");
    const reason = event.reason === "fork" ? "fork" : isNew ? "startup" : "resume";
    source = compaction && !isOurs(compaction) ? "compact" : reason;
    memory = undefined;
  });

  pi.on("before_agent_start", async (event, ctx) => {
    const isAsked = memory === undefined;
    if (isAsked) {
      const { context } = await hook("before_agent_start", ctx, { source, prompt: event.prompt });
      memory = typeof context === "string" ? context : "";
    }
    if (!memory) return;
    const sections = event.systemPromptOptions?.sections;
    isSection = Boolean(sections);
    if (isSection) sections[SECTION] = memory; // a section is for one turn; the same text keeps the prompt's cache
    else if (isAsked) return { message: { customType: SECTION, content: memory, display: false } };
  });

  pi.on("session_before_compact", async (event, ctx) => {
    const { compact } = await hook("session_before_compact", ctx);
    if (!compact || event.customInstructions) return; // only pi's own summary follows instructions
    const limits = { cwd: ctx.cwd, milliseconds: COMPACT_MS, signal: event.signal };
    const compaction = await ask(["compact", "-", "--to", "pi"], { preparation: event.preparation }, limits);
    const isWhole = typeof compaction.summary === "string" && compaction.summary !== "";
    if (isWhole && compaction.firstKeptEntryId === event.preparation.firstKeptEntryId) return { compaction };
  });

  pi.on("session_compact", async (event) => {
    const hasRows = isOurs(event.compactionEntry); // then the summary has the session's rows
    if (hasRows && isSection) return;
    source = hasRows ? "resume" : "compact";
    memory = undefined;
  });

  pi.on("agent_settled", async (_, ctx) => void (await hook("agent_settled", ctx)));
  pi.on("session_shutdown", async (_, ctx) => void (await hook("session_shutdown", ctx)));
}
