import { randomBytes } from 'node:crypto'
import { describeCause, Failure } from '../../base/core/failure.ts'
import { type ModelDoor, offered } from '../../run/settings/offered.ts'
import { type Workspace, WorkspaceError } from '../workspaces/contract.ts'
import { talkAcp } from './acp/client.ts'
import { runToEnd, tail } from './acp/run-to-end.ts'
import { type Asking, makeAsking } from './asking.ts'
import {
  type Assignment,
  type Ended,
  modelName,
  type OpenedHarness,
  promisedVariables,
} from './contract.ts'
import { enter, type Inside } from './inside/inside.ts'
import { installLine, installSeconds } from './programs/install.ts'

/** What a harness is started with. */
export interface Attempting {
  readonly opened: OpenedHarness | Pick<OpenedHarness, 'harness'>
  readonly workspace: Workspace
  readonly prompt: string
  readonly folder: string
  /** Without one, nothing can be installed. */
  readonly network: 'none' | 'outside'
  /** The program of Node in the sandbox. */
  readonly node: string
  /** Seconds that it may take. */
  readonly seconds: number
  /** Tokens that a conversation of it may have. */
  readonly context?: number | undefined
  /** Answers what it asks. */
  readonly fetch: typeof fetch
  readonly signal: AbortSignal
}

/** Most bytes of what a harness prints that are kept: the end. */
const keptBytes = 4 * 2 ** 20

let doors: Promise<() => ModelDoor> | undefined

/**
 * Starts a harness in its workspace and waits for its end; everything it started has ended then. Throws, with what
 * it printed, unless it did its work or a limit of the attempt stopped it.
 */
export async function attemptWith(attempting: Attempting): Promise<Ended> {
  const { workspace, signal, seconds, node, fetch: answer } = attempting
  doors ??= offered().openModelDoor()
  await using door = (await doors)()
  const asking = makeAsking({ token: `esp-${randomBytes(24).toString('base64url')}`, answer })
  const stop = new AbortController()
  const both = AbortSignal.any([signal, stop.signal])
  try {
    await using inside = await enter(workspace, {
      node,
      // The relay ends later than what it relays, and than the installing of a program.
      seconds: seconds + 30 + ('program' in attempting.opened ? 0 : installSeconds),
      signal: both,
      onConnection: connection => door.take(connection, asking),
    })
    return await work({ ...attempting, inside, asking })
  } finally {
    stop.abort()
  }
}

interface Working extends Attempting {
  readonly inside: Inside
  readonly asking: Asking
}

async function work(working: Working): Promise<Ended> {
  const { opened, inside, asking, folder, prompt, context } = working
  const { harness } = opened
  const program = 'program' in opened ? opened.program : await findInside(working)
  const url = `http://127.0.0.1:${inside.port}`
  const assignment = { prompt, folder, model: modelName, url, token: asking.token, context }
  const ended = await untilEnd(program, assignment, working)
  // Its limits ended the attempt, and the harness only met refusals after that.
  if (asking.isOver) return ended
  if (asking.answered === 0) {
    throw new Error(`${harness.name} ended without asking the model${tellEnd(ended, asking)}`)
  }
  if (harness.isDone(ended)) return ended
  throw new Error(`${harness.name} did not do its work${tellEnd(ended, asking)}`)
}

async function untilEnd(
  program: readonly string[],
  assignment: Assignment,
  { opened, inside, asking, folder, seconds, signal }: Working,
): Promise<Ended> {
  const { harness } = opened
  const { words, input, result, speaks } = harness.start(assignment)
  const process = inside.start({
    words: [...program, ...words],
    folder,
    variables: {
      PATH: pathWith(program[0]!),
      ...promisedVariables(assignment),
      ...harness.environment(assignment),
    },
  })
  const complaints = tail(process.complaints, keptBytes)
  const output = speaks ? undefined : tail(process.output, keptBytes)
  if (input !== undefined) process.write(input)
  if (!speaks) process.finish()
  const limit = openLimit({ seconds, signal, over: asking.over, broken: inside.over })
  try {
    const talk = speaks && talkAcp(process, { inside, assignment })
    const said = talk ? await Promise.race([talk, limit.reached]) : undefined
    if (talk) process.kill()
    const exited = await Promise.race([process.exited, limit.reached])
    const kept =
      result === undefined || exited === undefined
        ? undefined
        : await readInside(inside, result, folder)
    return {
      code: exited?.code ?? 137,
      output: output?.text() ?? '',
      complaints: [complaints.text(), exited?.problem].filter(Boolean).join('\n'),
      ...(kept !== undefined && { result: kept }),
      ...(said && { said }),
    }
  } catch (cause) {
    if (asking.isOver && !signal.aborted)
      return { code: 137, output: '', complaints: complaints.text() }
    if (cause instanceof Failure || signal.aborted || cause instanceof HarnessHangs)
      throw withName(harness.name, cause, asking)
    const printed = complaints.text().trim().slice(-500)
    throw new Error(
      `${harness.name}: ${describeCause(cause)}${printed && `; it printed: ${printed}`}${asking.refusals()}`,
    )
  } finally {
    limit.clear()
  }
}

function withName(name: string, cause: unknown, asking: Asking): unknown {
  if (!(cause instanceof HarnessHangs)) return cause
  return new Error(`${name} ${cause.message} (${asking.tell()})`)
}

class HarnessHangs extends Error {}

interface Limit {
  readonly seconds: number
  readonly signal: AbortSignal
  /** Resolves when nothing more will be answered. */
  readonly over: Promise<void>
  /** Resolves when the sandbox has ended. */
  readonly broken: Promise<unknown>
}

/** Seconds that a harness has left once nothing more is answered. */
const graceSeconds = 10

/** What ends the wait for a harness: nothing more is answered, which is no failure; its time, its attempt, its sandbox. */
function openLimit({ seconds, signal, over, broken }: Limit) {
  const timers: NodeJS.Timeout[] = []
  const reached = new Promise<undefined>((resolve, reject) => {
    const late = new HarnessHangs(`did not end within ${seconds} s`)
    timers.push(setTimeout(() => reject(late), Math.min(seconds * 1000, 2 ** 31 - 1)))
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    void over.then(() => timers.push(setTimeout(() => resolve(undefined), graceSeconds * 1000)))
    broken.then(() => reject(new WorkspaceError('the sandbox ended while it worked')), reject)
  })
  reached.catch(() => undefined)
  return { reached, clear: () => timers.forEach(timer => void clearTimeout(timer)) }
}

function tellEnd({ code, output, complaints, said }: Ended, asking: Asking): string {
  const printed = [complaints, output]
    .map(each => each.trim().slice(-400))
    .filter(Boolean)
    .join('\n')
  const how = said ? `it stopped with ${said.stop}` : `exit code ${code}`
  return ` (${how}${asking.refusals()})${printed && `: ${printed}`}`
}

/** Programs beside the program come first, as do those of this process if it runs here. */
function pathWith(program: string): string {
  const own = program.includes('/') ? [program.replace(/\/[^/]*$/, '')] : []
  const node = process.execPath.replace(/\/[^/]*$/, '')
  return [...own, node, '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin'].join(':')
}

async function readInside(
  inside: Inside,
  path: string,
  folder: string,
): Promise<string | undefined> {
  const words = ['cat', '--', path]
  const { code, output } = await runToEnd(inside, { words, folder }, { most: keptBytes })
  return code === 0 ? output : undefined
}

/** The program in a sandbox elsewhere; installed there if it is missing and there is a network. */
async function findInside({
  opened: { harness },
  inside,
  folder,
  network,
}: Working): Promise<readonly string[]> {
  const { program } = harness.install
  const run = (line: string) =>
    runToEnd(inside, { words: ['/bin/sh', '-c', line, 'sh', program], folder }, { most: keptBytes })
  const line = installLine(harness)
  const found = await run(`PATH="$PATH:${line.bin}" command -v -- "$1"`)
  if (found.code === 0) return [found.output.trim()]
  if (network === 'none') {
    throw new WorkspaceError(
      `the sandbox has no ${program}, and nothing can be installed there without a network: ` +
        'start it from an image that has it, or open the network with network=outside',
    )
  }
  const installed = await run(line.install)
  if (installed.code === 0) return [`${line.bin}/${program}`]
  const why = installed.code === 137 ? `${installSeconds} s were over` : installed.complaints.trim()
  throw new WorkspaceError(
    `the sandbox has no ${program}, and "${line.shown}" does not run there: ${why.slice(-300)}`,
  )
}
