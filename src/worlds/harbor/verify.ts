import { existsSync } from 'node:fs'
import { copyFile, cp, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import type { Call } from '../../base/core/call.ts'
import { parseBounded } from '../../base/core/process/bounded.ts'
import { late } from '../../engine/environments/late.ts'
import type { Workspace } from '../workspaces/contract.ts'
import { FileProblem, readFileIn } from '../workspaces/files.ts'
import type { TaskFolder } from './task-folder.ts'

/** What a task's own tests said. */
export interface Verdict {
  readonly reward: number
  /** Further figures that the tests wrote. */
  readonly figures?: Readonly<Record<string, number>>
  /** The end of what they printed. */
  readonly printed: string
}

/** Bytes of what tests print that are kept. */
const keptBytes = 8000

/** Runs a task's tests. They are copied in only now, after files that the policy left for them are removed. */
export async function verify(workspace: Workspace, task: TaskFolder, call: Call): Promise<Verdict> {
  await putTests(workspace, task, call)
  const script = task.format === 'harbor' ? 'test.sh' : 'run-tests.sh'
  const command = `bash /tests/${script} > /logs/verifier/printed 2>&1; tail -c ${keptBytes} /logs/verifier/printed`
  const { seconds, variables } = task.verifier
  const ran = await workspace.run(['/bin/sh', '-c', command], { ...call, seconds, variables })
  if (ran.end !== 'exited') throw new Error(`the tests of ${task.name} took over ${seconds} s`)
  const printed = ran.output
  const fault = faultOf(printed)
  const refused = fault && new Error(`the tests of ${task.name} ${fault}`)
  const verdict = await readVerdict(workspace, task, { ...call, printed }).catch(cause => {
    throw refused ?? cause
  })
  // If the tests passed anyway, they did not need what was missing.
  if (refused && verdict.reward < 1) throw refused
  return verdict
}

async function readVerdict(
  workspace: Workspace,
  task: TaskFolder,
  call: Call & { readonly printed: string },
): Promise<Verdict> {
  const { printed } = call
  if (task.format === 'terminal-bench') return { reward: passedAll(task, printed), printed }
  return { ...(await readReward(workspace, task, call)), printed }
}

/**
 * Signs that the workspace lacked something that tests need, as programs print them at the beginning of
 * a line. Such tests say nothing about the policy, whatever score they wrote. A program of the
 * policy's that lacks something names its own path instead, and counts against the policy.
 */
const faults: readonly (readonly [RegExp, (found: string) => string])[] = [
  [/^\/tests\/\S+: (?:line )?\d+: (\S+): (?:command )?not found$/m, missing],
  [/^(?:\/usr\/bin\/)?env: [‘'](\S+?)[’']: No such file or directory$/m, missing],
  [/No module named '?(pytest\w*)/, missing],
  [/^(?:su|sudo|runuser|setpriv|gosu): (?:unknown )?user:? [‘'"]?(\w[\w-]*)/m, noUser],
  [/^(?:chown|chgrp|install): invalid user: [‘'](\w[\w-]*)/m, noUser],
  [/^id: [‘'](\w[\w-]*)[’']: no such user$/m, noUser],
  [/^(?:curl: \(\d+\) )?Could not resolve host: (\S+)/m, noNetwork],
  [/Temporary failure (?:in name resolution|resolving) ?[‘']?([\w.-]*)/, noNetwork],
  [/^E: (?:Unable to locate package|Failed to fetch) (\S+)/m, noNetwork],
  [/^ERROR: No matching distribution found for (\S+)/m, noNetwork],
]

function missing(name: string): string {
  return `need ${name}, which is not there: name it in toolchain=DIR`
}

function noUser(name: string): string {
  return `need the user ${name}, whom this sandbox does not have: use a container (sandbox=podman)`
}

function noNetwork(name: string): string {
  return `wanted to fetch ${name || 'something'}, and the sandbox has no network`
}

/** What the workspace lacked, by what the tests printed; undefined if nothing. */
export function faultOf(printed: string): string | undefined {
  for (const [pattern, tell] of faults) {
    const found = pattern.exec(printed)
    if (found) return tell(found[1] ?? '')
  }
  return undefined
}

async function putTests(workspace: Workspace, task: TaskFolder, call: Call): Promise<void> {
  const stage = await mkdtemp(join(tmpdir(), 'espalier-tests-'))
  try {
    const tests = join(stage, 'tests')
    await mkdir(join(stage, 'logs', 'verifier'), { recursive: true })
    await mkdir(tests, { recursive: true })
    const own = join(task.folder, 'tests')
    if (existsSync(own)) await cp(own, tests, { recursive: true, verbatimSymlinks: true })
    if (task.format === 'terminal-bench') {
      await copyFile(join(task.folder, 'run-tests.sh'), join(tests, 'run-tests.sh'))
    }
    await workspace.put({ from: tests, to: '/tests' }, call)
    await workspace.put({ from: join(stage, 'logs'), to: '/logs' }, call)
  } finally {
    await rm(stage, { recursive: true, force: true })
  }
}

const figuresSchema = late(() => z.record(z.string(), z.number()))

/** The reward as Harbor reads it: figures as JSON, or one number as text. */
async function readReward(
  workspace: Workspace,
  task: TaskFolder,
  { printed, ...call }: Call & { readonly printed: string },
): Promise<Pick<Verdict, 'reward' | 'figures'>> {
  const json = await readOr(workspace, '/logs/verifier/reward.json', call)
  if (json !== undefined) {
    const read = figuresSchema().safeParse(tryJson(json))
    const reward = read.success ? (read.data.reward ?? Object.values(read.data)[0]) : undefined
    if (reward !== undefined) return { reward, figures: read.data! }
  }
  const text = await readOr(workspace, '/logs/verifier/reward.txt', call)
  const reward = text === undefined || text.trim() === '' ? Number.NaN : Number(text)
  if (Number.isFinite(reward)) return { reward }
  throw new Error(
    `the tests of ${task.name} wrote no reward; they printed: ${printed.trim().slice(-500) || 'nothing'}`,
  )
}

async function readOr(workspace: Workspace, path: string, call: Call): Promise<string | undefined> {
  try {
    return await readFileIn(workspace, path, call)
  } catch (cause) {
    if (cause instanceof FileProblem) return undefined
    throw cause
  }
}

function tryJson(text: string): unknown {
  try {
    return parseBounded(text)
  } catch {
    return undefined
  }
}

/** The summary that pytest prints with `-rA`: 1 if all tests passed. */
function passedAll(task: TaskFolder, printed: string): number {
  const count = (word: string): number =>
    [...printed.matchAll(new RegExp(`^${word} \\S+::`, 'gm'))].length
  const [passed, failed] = [count('PASSED'), count('FAILED') + count('ERROR')]
  if (passed + failed > 0) return Number(failed === 0)
  throw new Error(
    `the tests of ${task.name} gave no summary of pytest -rA; they printed: ${printed.trim().slice(-500) || 'nothing'}`,
  )
}
