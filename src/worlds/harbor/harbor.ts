import { existsSync } from 'node:fs'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import type { Call } from '../../base/core/call.ts'
import type { Environment, Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { environment } from '../../engine/environments/environment.ts'
import { lateSchema } from '../../engine/environments/late.ts'
import type { WorldBehaviour } from '../../engine/environments/opened-world.ts'
import {
  useOf,
  type Workspace,
  type Workspaces,
  type WorkspaceUse,
} from '../workspaces/contract.ts'
import { openWorkspaces, type WorkspaceOptions } from '../workspaces/world/open.ts'
import { workspaceTools } from '../workspaces/world/tools.ts'
import { readDockerfile, stage, workingFolderOf } from './dockerfile.ts'
import { findTaskFolders, readTaskFolder, type TaskFolder } from './task-folder.ts'
import { type Verdict, verify } from './verify.ts'

function makeSchema() {
  return z.object({ folder: z.string().min(1) })
}

/** Which folder a task is. */
export type HarborTask = z.output<ReturnType<typeof makeSchema>>

/** The report of a task folder's world. */
export interface HarborReport extends Verdict {
  /** Instructions of its Dockerfile that were left out. */
  readonly skipped: readonly string[]
  /** What was used of a vendor's machines. */
  readonly sandbox?: WorkspaceUse
}

/** How task folders are opened. */
export interface HarborOptions extends WorkspaceOptions {
  /**
   * For tasks whose Dockerfile installs programs, which needs a network: `refused` fails them, `skipped`
   * leaves the installing out because this machine or `toolchain` has them. @default 'refused'
   */
  readonly installs?: 'refused' | 'skipped' | undefined
}

/** Task folders of Harbor and terminal-bench: their files, a shell, their own tests as reward. */
export function harbor(path: string, options: HarborOptions = {}): Environment<HarborTask> {
  const { workspaces, limits } = openWorkspaces(options)
  const folders = findTaskFolders(path)
  const behave = (prepared: Prepared): WorldBehaviour<HarborReport> => ({
    tools: workspaceTools({ ...prepared, limits }),
    async report() {
      const { signal } = new AbortController()
      const { workspace, from, skipped } = prepared
      return { ...(await verify(workspace, from, { signal })), skipped, ...useOf(workspace) }
    },
    async fork({ signal, defer }) {
      const workspace = await prepared.workspace.fork({ signal })
      defer(() => workspace[Symbol.asyncDispose]())
      return behave({ ...prepared, workspace })
    },
  })
  const made = environment({
    name: 'harbor',
    task: lateSchema(makeSchema),
    async open({ data, signal, defer }) {
      const prepared = await prepare(workspaces, readTaskFolder(data.folder), {
        ...options,
        signal,
      })
      defer(() => prepared.workspace[Symbol.asyncDispose]())
      const content = `${prepared.from.instruction}\n\nYou work in ${prepared.folder}.`
      return { opening: [{ role: 'user', content }], ...behave(prepared) }
    },
    reward: { tests: ({ report }) => report.reward },
    makeTasks: ({ count }): readonly Task<HarborTask>[] =>
      folders.slice(0, count).map(folder => {
        const { name } = readTaskFolder(folder)
        return { id: name as TaskId, data: { folder } }
      }),
    [Symbol.asyncDispose]: () => workspaces[Symbol.asyncDispose](),
  })
  return { ...made, isolation: workspaces.isolation }
}

interface Prepared {
  readonly workspace: Workspace
  readonly from: TaskFolder
  /** The folder that is worked in. */
  readonly folder: string
  readonly skipped: readonly string[]
}

/** Most seconds that a command of a Dockerfile takes. */
const buildSeconds = 600

/** A workspace as the task's Dockerfile makes it, as far as it can be made without an engine. */
async function prepare(
  workspaces: Workspaces,
  from: TaskFolder,
  { installs = 'refused', signal }: Pick<HarborOptions, 'installs'> & Call,
): Promise<Prepared> {
  const call = { signal }
  const image = from.image === undefined ? { build: from.context } : { name: from.image }
  if (workspaces.buildsImages) {
    const workingFolder = workingFolderOf(from.context)
    const workspace = await workspaces.open({ puts: [], workingFolder, image }, call)
    return { workspace, from, folder: workingFolder, skipped: [] }
  }
  const recipe = readDockerfile(from.context)
  const { workingFolder, variables, skipped } = recipe
  const missing = skipped.find(line => /^(RUN|ADD)\b/i.test(line))
  if (missing !== undefined && installs === 'refused') {
    throw new Error(
      `the Dockerfile of ${from.name} installs what walls cannot fetch: "${missing.slice(0, 120)}". ` +
        'Say installs=skipped where this machine or toolchain=DIR has it',
    )
  }
  const into = await mkdtemp(join(tmpdir(), 'espalier-harbor-'))
  try {
    const tops = await stage(recipe, { context: from.context, into, hidden: from.hidden })
    const puts = tops.map(top => ({ from: join(into, top), to: `/${top}` }))
    const source = { puts, workingFolder, variables, image }
    const workspace = await workspaces.open(source, call)
    try {
      for (const step of recipe.steps) {
        if (step.kind === 'run') await runStep(workspace, step, { ...call, name: from.name })
      }
    } catch (cause) {
      await workspace[Symbol.asyncDispose]()
      throw cause
    }
    return { workspace, from, folder: workingFolder, skipped }
  } finally {
    await rm(into, { recursive: true, force: true })
  }
}

async function runStep(
  workspace: Workspace,
  step: { readonly command: string; readonly in: string },
  { name, ...call }: Call & { readonly name: string },
): Promise<void> {
  const words = ['/bin/sh', '-c', `cd "$1" 2>/dev/null; ${step.command}`, 'sh', step.in]
  const { code, complaints, end } = await workspace.run(words, { ...call, seconds: buildSeconds })
  if (end === 'exited' && code === 0) return
  throw new Error(
    `"RUN ${step.command}" of ${name} does not run here (${end} with ${code}): ${complaints.trim().slice(-300)}`,
  )
}

/** Runs a task's own solution in place of a policy, and gives what its tests say of it. */
export async function solveHarbor(
  path: string,
  options: HarborOptions & Call,
): Promise<HarborReport> {
  const { workspaces } = openWorkspaces(options)
  const from = readTaskFolder(path)
  const { workspace, skipped } = await prepare(workspaces, from, options)
  try {
    await runSolution(workspace, from, options)
    return { ...(await verify(workspace, from, options)), skipped }
  } finally {
    await workspace[Symbol.asyncDispose]()
  }
}

async function runSolution(workspace: Workspace, from: TaskFolder, call: Call): Promise<void> {
  const isHarbor = from.format === 'harbor'
  const solution = isHarbor ? join(from.folder, 'solution') : join(from.folder, 'solution.sh')
  if (!existsSync(solution)) throw new Error(`${from.name} has no solution of its own`)
  const { signal } = call
  if (isHarbor) await workspace.put({ from: solution, to: '/solution' }, { signal })
  else await putFile(workspace, solution, { signal })
  const words = ['bash', '/solution/solve.sh']
  await workspace.run(words, { signal, seconds: buildSeconds })
}

async function putFile(workspace: Workspace, file: string, call: Call): Promise<void> {
  const into = await mkdtemp(join(tmpdir(), 'espalier-solution-'))
  try {
    await copyFile(file, join(into, 'solve.sh'))
    await workspace.put({ from: into, to: '/solution' }, call)
  } finally {
    await rm(into, { recursive: true, force: true })
  }
}
