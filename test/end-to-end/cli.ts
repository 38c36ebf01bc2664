import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The result of a run of the program. */
export interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** The built program; `ESPALIER_PROGRAM` names another build. */
export const program =
  process.env.ESPALIER_PROGRAM ?? fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/** Runs the built program, as a person would. */
export function espalier(...words: readonly string[]): Promise<Finished> {
  return start(words).finished
}

/** A program that runs. */
export interface Started {
  readonly child: ChildProcess
  readonly finished: Promise<Finished>
}

/** How a program is started. */
export interface StartOptions {
  readonly folder?: string
  readonly variables?: Readonly<Record<string, string>>
  /** The largest file it may write, in KiB. */
  readonly largestFile?: number
}

/** Starts the built program. */
export function start(words: readonly string[], options: StartOptions = {}): Started {
  const { folder, variables, largestFile } = options
  const limit = largestFile === undefined ? '' : `ulimit -f ${largestFile}; `
  const child = spawn(
    'bash',
    ['-c', `${limit}exec "$@"`, '-', process.execPath, program, ...words],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(folder !== undefined && { cwd: folder }),
      env: { ...process.env, ...variables },
    },
  )
  const finished = new Promise<Finished>((resolve, reject) => {
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', chunk => (stdout += chunk))
    child.stderr.on('data', chunk => (stderr += chunk))
    child.on('error', reject)
    child.on('close', code => resolve({ code, stdout, stderr }))
  })
  return { child, finished }
}

/** A folder for one test's files. */
export function scratch(): string {
  return mkdtempSync(join(tmpdir(), 'espalier-test-'))
}

/** A row of the neutral format; what tests look into. */
export interface JsonRow {
  readonly task: string
  readonly member: number
  readonly ids: readonly number[]
  readonly mask: readonly number[]
  readonly logprobs: readonly (number | null)[]
  readonly origins: readonly (readonly [number, number, string])[]
  readonly versions: readonly (readonly [number, number, number])[]
  readonly reward: number | null
  readonly advantage: number | null
  readonly outcome: { readonly kind: string; readonly boundary?: string }
  readonly fidelity: { readonly kind: string }
  readonly messages: readonly { readonly role: string; readonly content: string }[]
}

/** Reads the lines of a JSONL file. */
export function readLines(path: string): readonly JsonRow[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line) as JsonRow)
}
