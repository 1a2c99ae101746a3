// A memory for OpenCode. This file only passes OpenCode's events on to `om hook opencode`, and its answers back; see
// om-hook(1).
import { spawn } from "node:child_process"
import { homedir } from "node:os"
import { join, resolve as resolved } from "node:path"

const OM = __OM__
const HOOK_MS = 5_000
const TITLE = "You are a title generator"

/** Run `om hook opencode` and return what it prints, or "" if it fails or takes too long. */
function run(call) {
  return new Promise((resolve) => {
    const parts = []
    const child = spawn(OM, ["hook", "opencode"], { cwd: call.cwd, stdio: ["pipe", "pipe", "ignore"] })
    const end = (text) => {
      clearTimeout(timer)
      resolve(text)
    }
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      end("")
    }, HOOK_MS)
    child.on("error", () => end(""))
    child.on("close", (code) => end(code === 0 ? Buffer.concat(parts).toString("utf8") : ""))
    child.stdout.on("data", (part) => parts.push(part))
    child.stdin.on("error", () => {}) // om need not read to the end
    child.stdin.end(JSON.stringify(call))
  })
}

/** Return the text that om answers, or "". */
async function ask(call) {
  try {
    const { context } = JSON.parse(await run(call)) ?? {}
    return typeof context === "string" ? context : ""
  } catch {
    return ""
  }
}

/** Return the path of OpenCode's database, which has all sessions. */
function database() {
  const data = join(process.env.XDG_DATA_HOME || join(homedir(), ".local", "share"), "opencode")
  return resolved(data, process.env.OPENCODE_DB || "opencode.db")
}

export const Om = async ({ client, directory }) => {
  if (process.env.OM_WORKER) return {} // om itself runs this agent

  const sources = new Map() // why a session is to be told its memory: it was created, or compacted
  const memories = new Map() // what each session was told
  const subagents = new Set()
  const summaries = new Set() // sessions whose next request is for a summary

  const hook = (event, session, more = {}) =>
    ask({ hook_event_name: event, session_id: session, transcript_path: database(), cwd: directory, ...more })

  /** Return why a session that goes on is to be told its memory. */
  const resumed = async (id) => {
    try {
      const { data } = await client.session.messages({ path: { id } })
      return data.some(({ info }) => info.summary === true) ? "compact" : "resume"
    } catch {
      return "resume"
    }
  }

  const recall = async (session) => {
    const source = sources.get(session) ?? (await resumed(session))
    return hook("experimental.chat.system.transform", session, { source })
  }

  return {
    event: async ({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id
      if (event.type === "session.created") {
        if (event.properties.info?.parentID) subagents.add(session)
        else sources.set(session, "startup")
      } else if (event.type === "session.compacted") {
        sources.set(session, "compact")
        memories.delete(session)
      } else if ((event.type === "session.idle" || event.type === "session.deleted") && !subagents.has(session)) {
        await hook(event.type, session)
      }
    },
    "experimental.chat.system.transform": async ({ sessionID: session }, { system }) => {
      if (!session || subagents.has(session) || summaries.delete(session) || system[0]?.startsWith(TITLE)) return
      if (!memories.has(session)) memories.set(session, recall(session))
      const text = await memories.get(session)
      if (text) system.push(text) // each request has a system prompt of its own; the same text keeps its cache
    },
    "experimental.session.compacting": async ({ sessionID: session }, output) => {
      const text = await hook("experimental.session.compacting", session)
      if (text) output.context.push(text)
      summaries.add(session)
    },
  }
}
