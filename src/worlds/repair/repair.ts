import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { Call } from '../../base/core/call.ts'
import type { Environment, MakeTasksOptions, Task } from '../../base/core/environment.ts'
import type { Json, TaskId } from '../../base/core/ids.ts'
import { parseBounded } from '../../base/core/process/bounded.ts'
import { random, seedOf, shuffle } from '../../base/math/random.ts'
import { environment } from '../../engine/environments/environment.ts'
import { late, lateSchema } from '../../engine/environments/late.ts'
import type { WorldBehaviour } from '../../engine/environments/opened-world.ts'
import type { Situation } from '../../engine/environments/play.ts'
import {
  useOf,
  usualFolder,
  type Workspace,
  WorkspaceError,
  type Workspaces,
  type WorkspaceUse,
} from '../workspaces/contract.ts'
import { openWorkspaces, type WorkspaceOptions } from '../workspaces/world/open.ts'
import { workspaceTools } from '../workspaces/world/tools.ts'
import { type Mutant, mutantsOf, shownCases } from './mutate.ts'
import { programs } from './programs.ts'

function makeSchema() {
  const cases = z.array(z.object({ given: z.array(z.json()), gives: z.json() })).min(1)
  return z.object({
    program: z.string(),
    does: z.string(),
    source: z.string(),
    /** Shown, with what they should give. */
    shown: cases,
    /** Only the reward knows what these should give. */
    hidden: cases,
    /** What mends it, for demonstrations. */
    fix: z.object({ find: z.string(), replace: z.string() }).optional(),
  })
}

/** A broken program to repair. */
export type RepairTask = z.output<ReturnType<typeof makeSchema>>

/** The report of a repair. */
export interface RepairReport {
  readonly passed: number
  readonly total: number
  /** Why nothing could be counted, if the program did not run. */
  readonly problem?: string
  /** What was used of a vendor's machines. */
  readonly sandbox?: WorkspaceUse
}

const folder = usualFolder
/** What containers are made from. */
const image = { name: 'docker.io/library/node:22-slim' }
const file = 'program.mjs'
/** Keeps the runtime's own memory small, so that limits on address space hold it. */
const nodeFlags = ['--max-old-space-size=256']

/** How broken programs are opened. */
export interface RepairOptions extends WorkspaceOptions {
  /** The program of Node in the workspaces. @default this process's own; `node` in another sandbox */
  readonly node?: string
  /** What whoever repairs is told to test with. @default 'run_tests', which is a tool */
  readonly test?: string
}

/** Small programs with one mistake each: tools to look, edit and test; the tests are the reward. */
export function repair(options: RepairOptions = {}): Environment<RepairTask> {
  const { workspaces, limits } = openWorkspaces(options)
  // Another machine, or a container, has its own Node.
  const { node = options.sandbox ? 'node' : process.execPath, test = 'run_tests' } = options
  const made = environment({
    name: 'repair',
    task: lateSchema(makeSchema),
    async open({ data, signal, defer }) {
      const workspace = await openWorkspace(workspaces, data, { signal })
      defer(() => workspace[Symbol.asyncDispose]())
      const content =
        `${file} should be a function that ${data.does}. It has one mistake. ` +
        `Find and mend it; ${test} says whether it is right. Say done when it is.`
      return {
        opening: [{ role: 'user', content }],
        ...behave(workspace),
      }
    },
    reward: {
      solved: ({ report }) => Number(report.passed === report.total),
      passed: { weight: 0, score: ({ report }) => report.passed / report.total },
    },
    makeTasks: repairTasks,
    splits: ['train', 'held-out'],
    [Symbol.asyncDispose]: () => workspaces[Symbol.asyncDispose](),
  })
  const testCommand = [node, ...nodeFlags, 'tests.mjs']
  const dataOf = new WeakMap<Workspace, RepairTask>()
  async function openWorkspace(from: Workspaces, data: RepairTask, call: Call): Promise<Workspace> {
    const here = await mkdtemp(join(tmpdir(), 'espalier-repair-'))
    try {
      await mkdir(here, { recursive: true })
      await writeFile(join(here, file), data.source)
      await writeFile(join(here, 'tests.mjs'), testsFor(data))
      const puts = [{ from: here, to: folder }]
      const workspace = await from.open({ puts, workingFolder: folder, image }, call)
      dataOf.set(workspace, data)
      return workspace
    } finally {
      await rm(here, { recursive: true, force: true })
    }
  }
  function behave(workspace: Workspace): WorldBehaviour<RepairReport> {
    const data = dataOf.get(workspace)!
    return {
      tools: workspaceTools({ workspace, limits, folder, test: testCommand }),
      report: async () => ({ ...(await grade(workspace, data, node)), ...useOf(workspace) }),
      async fork({ signal, defer }) {
        const fork = await workspace.fork({ signal })
        defer(() => fork[Symbol.asyncDispose]())
        dataOf.set(fork, data)
        return behave(fork)
      },
    }
  }
  return { ...made, isolation: workspaces.isolation }
}

/** The tests that lie beside a program, for whoever repairs it. */
function testsFor({ shown }: RepairTask): string {
  return `import program from './${file}'
const cases = ${JSON.stringify(shown)}
let wrong = 0
for (const { given, gives } of cases) {
  const got = program(...given)
  if (JSON.stringify(got) === JSON.stringify(gives)) continue
  wrong++
  console.log(\`\${JSON.stringify(given)} should give \${JSON.stringify(gives)}, gave \${JSON.stringify(got)}\`)
}
console.log(wrong === 0 ? 'all tests pass' : \`\${wrong} of \${cases.length} tests fail\`)
process.exitCode = wrong === 0 ? 0 : 1
`
}

/** Runs a program on arguments; what they should give never goes inside. */
const driver = `const { default: program } = await import(process.argv[1])
let text = ''
for await (const chunk of process.stdin) text += chunk
const results = JSON.parse(text).map(given => {
  try { return { gave: program(...given) ?? null } } catch (error) { return { threw: String(error) } }
})
process.stdout.write('\\n' + JSON.stringify(results) + '\\n')`

const results = late(() =>
  z.array(z.object({ gave: z.json().optional(), threw: z.string().optional() })),
)

/** Most seconds that all cases of a program take. */
const gradingSeconds = 20

/** Results are compared in this process, which the policy's code cannot reach. */
async function grade(workspace: Workspace, data: RepairTask, node: string): Promise<RepairReport> {
  const all = [...data.shown, ...data.hidden]
  const { end, code, output, complaints } = await workspace.run(
    [node, ...nodeFlags, '--input-type=module', '--eval', driver, `${folder}/${file}`],
    {
      signal: AbortSignal.timeout(2000 * gradingSeconds),
      seconds: gradingSeconds,
      input: JSON.stringify(all.map(({ given }) => given)),
    },
  )
  const total = all.length
  const read = readResults(output)
  if (!read) {
    if (code === 126 || code === 127) await refuseWithoutNode(workspace, node)
    const problem =
      end === 'exited'
        ? `it ended with ${code}: ${complaints.trim().slice(-300)}`
        : 'it took too long'
    return { passed: 0, total, problem }
  }
  const passed = all.filter(({ gives }, index) =>
    isDeepStrictEqual(read[index]?.gave, gives),
  ).length
  return { passed, total }
}

/** If the workspace has no Node, the attempt fails: its tests say nothing about the policy. */
async function refuseWithoutNode(workspace: Workspace, node: string): Promise<void> {
  const signal = AbortSignal.timeout(2000 * gradingSeconds)
  const { code, complaints } = await workspace.run([node, '--version'], { signal })
  if (code !== 0) throw new WorkspaceError(`${node} does not run inside: ${complaints.trim()}`)
}

function readResults(output: string): readonly { readonly gave?: Json | undefined }[] | undefined {
  try {
    const read = results().safeParse(parseBounded(output.trimEnd().split('\n').at(-1) ?? ''))
    return read.success ? (read.data as readonly { gave?: Json }[]) : undefined
  } catch {
    return undefined
  }
}

let known: readonly Mutant[] | undefined

/** Mutants in the seed's order; a quarter of all, whichever the seed, is held out. */
function repairTasks({
  count,
  seed,
  split = 'train',
}: MakeTasksOptions): readonly Task<RepairTask>[] {
  known ??= programs.flatMap(mutantsOf)
  const isHeldOut = ({ program, number }: Mutant): boolean =>
    random(seedOf('repair', program.name, number))() < 0.25
  const chosen = known.filter(mutant => isHeldOut(mutant) === (split === 'held-out'))
  return shuffle(chosen, random(seedOf(seed, 'repair', split)))
    .slice(0, count)
    .map(({ program, number, source, fix }) => {
      const shown = shownCases(program)
      return {
        id: `${program.name}-${number}` as TaskId,
        data: {
          program: program.name,
          does: program.does,
          source,
          shown: [...shown] as RepairTask['shown'],
          hidden: program.cases.slice(shown.length) as RepairTask['hidden'],
          fix,
        },
      }
    })
}

/** A player that knows the mistake: reads, mends, tests, and says done. */
export function showRepair({ task: { data }, turn }: Situation<RepairTask>) {
  if (turn === 0) return { tool: 'read_file', input: { path: file } }
  if (turn === 1 && data.fix) return { tool: 'edit_file', input: { path: file, ...data.fix } }
  return turn === 2 ? { tool: 'run_tests', input: {} } : 'done'
}
