import { z } from 'zod'
import { across } from '../../../base/core/failure.ts'
import { late } from '../../../engine/environments/late.ts'
import { type OfferedTool, tool } from '../../../engine/environments/tools/tool.ts'
import type { Finished } from '../../sandboxes/run.ts'
import type { Workspace, WorkspaceLimits } from '../contract.ts'
import {
  FileProblem,
  listFilesIn,
  readFileIn,
  readWholeFileIn,
  sizeIn,
  writeFileIn,
} from '../files.ts'

/** What the tools of a workspace work on. */
export interface ToolOptions {
  readonly workspace: Workspace
  readonly limits: WorkspaceLimits
  /** The folder that is worked in. */
  readonly folder: string
  /** The command that `run_tests` runs; without one there is no such tool. */
  readonly test?: readonly string[]
}

/** Tools for working on files: list, read, write, edit, run commands, run the tests. */
export function workspaceTools(options: ToolOptions): Readonly<Record<string, OfferedTool>> {
  const { workspace, limits, test } = options
  // Calls of one turn change the same files, so they run one after the other.
  let before: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> => {
    const done = before.then(() => {
      signal.throwIfAborted()
      return unbroken(signal, work)
    })
    before = done.catch(() => {})
    return done
  }
  const command = async (words: readonly string[], signal: AbortSignal): Promise<string> => {
    const finished = await workspace.run(words, { signal })
    const size = await sizeIn(workspace, options.folder, { signal })
    const full = size > limits.disk ? [`[the files take ${size} MiB of ${limits.disk}]`] : []
    return [tell(finished, limits), ...full].join('\n')
  }
  return {
    ...fileTools(options, inTurn),
    shell: tool({
      description: `Runs a command with sh in ${options.folder} and gives what it prints. It has ${limits.seconds} seconds, no network, and nothing outlives it.`,
      inputSchema: z.object({ command: wordSchema() }),
      limits: ownLimits(limits),
      execute: ({ command: text }, { abortSignal: signal }) =>
        inTurn(signal, () => command(['/bin/sh', '-c', text], signal)),
    }),
    ...(test && {
      run_tests: tool({
        description: 'Runs the tests that come with the files and gives what they print.',
        inputSchema: z.object({}),
        limits: ownLimits(limits),
        execute: (_, { abortSignal: signal }) => inTurn(signal, () => command(test, signal)),
      }),
    }),
  }
}

type InTurn = <T>(signal: AbortSignal, work: () => Promise<T>) => Promise<T>

/** The system takes no longer word in a command, and none with a NUL. */
const mostWord = 2 ** 17 - 1
const wordSchema = late(() =>
  z
    .string()
    .refine(text => !text.includes('\0'), 'has a NUL character')
    .refine(text => Buffer.byteLength(text) <= mostWord, `has more than ${mostWord} bytes`),
)
const pathSchema = late(() => wordSchema().min(1).max(1000))

function fileTools(
  { workspace, limits }: ToolOptions,
  inTurn: InTurn,
): Readonly<Record<string, OfferedTool>> {
  const bounds = { limits: ownLimits(limits) }
  const path = pathSchema()
  return {
    list_files: tool({
      description: 'Lists files and folders, two levels deep.',
      inputSchema: z.object({ path: path.default('.') }),
      ...bounds,
      execute: ({ path: where }, { abortSignal: signal }) =>
        inTurn(signal, async () => (await listFilesIn(workspace, where, { signal })) || '(empty)'),
    }),
    read_file: tool({
      description: 'Gives the text of a file.',
      inputSchema: z.object({ path }),
      ...bounds,
      execute: ({ path: where }, { abortSignal: signal }) =>
        inTurn(signal, async () => (await readFileIn(workspace, where, { signal })) || '(empty)'),
    }),
    write_file: tool({
      description: 'Writes a file, or replaces it.',
      inputSchema: z.object({ path, content: z.string() }),
      ...bounds,
      execute: ({ path: where, content }, { abortSignal: signal }) =>
        inTurn(signal, async () => {
          await writeFileIn(workspace, { path: where, text: content }, { signal })
          return `wrote ${where}`
        }),
    }),
    edit_file: tool({
      description: 'Replaces a text that stands exactly once in a file.',
      inputSchema: z.object({ path, find: z.string().min(1), replace: z.string() }),
      ...bounds,
      execute: ({ path: where, find, replace }, { abortSignal: signal }) =>
        inTurn(signal, async () => {
          const asked = { signal, outputBytes: limits.outputBytes }
          const text = await readWholeFileIn(workspace, where, asked)
          const count = text.split(find).length - 1
          if (count !== 1) throw new FileProblem(`the text stands ${count} times in ${where}`)
          await writeFileIn(
            workspace,
            { path: where, text: text.replace(find, () => replace) },
            { signal },
          )
          return `edited ${where}`
        }),
    }),
  }
}

/** No limit here: commands have their own, and waiting for earlier ones must not count. */
function ownLimits({ outputBytes }: WorkspaceLimits) {
  return { seconds: Number.MAX_SAFE_INTEGER, characters: 3 * outputBytes }
}

/** Errors about files are shown to the policy; anything else is a failure of the environment. */
async function unbroken<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  let problem: FileProblem | undefined
  const result = await across('environment', { signal }, async () => {
    try {
      return await work()
    } catch (cause) {
      if (!(cause instanceof FileProblem)) throw cause
      problem = cause
      return undefined
    }
  })
  if (problem) throw new Error(problem.message)
  return result as T
}

/** What became of a command, as the policy is shown it. */
function tell(finished: Finished, { seconds }: Pick<WorkspaceLimits, 'seconds'>): string {
  const { output, complaints, cut, code, end } = finished
  const parts = [output.trimEnd(), complaints.trimEnd()].filter(part => part !== '')
  if (cut > 0) parts.push(`[${cut} more bytes not shown]`)
  if (end === 'out-of-time') parts.push(`[stopped after ${seconds} seconds]`)
  else if (code !== 0) parts.push(`[exit code ${code}]`)
  return parts.join('\n') || '(no output)'
}
