import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join, resolve } from 'node:path'
import { z } from 'zod'
import { late } from '../../engine/environments/late.ts'

/** A task folder as Harbor or terminal-bench lays it out. */
export interface TaskFolder {
  readonly name: string
  readonly folder: string
  readonly format: 'harbor' | 'terminal-bench'
  readonly instruction: string
  /** The folder that its Dockerfile is built in. */
  readonly context: string
  /** What lies in that folder too and is not for the policy: tests and solution. */
  readonly hidden: readonly string[]
  readonly verifier: {
    readonly seconds: number
    readonly variables: Readonly<Record<string, string>>
  }
  /** Whether the policy's commands may reach the network, as the task says. */
  readonly wantsNetwork: boolean
  /** A ready image, if the task names one. */
  readonly image?: string
}

/** Most bytes of a file that describes a task. */
const mostBytes = 1_000_000

/** Loaded with the first task, since it is a dozen files. */
const toml = late((): typeof import('smol-toml') => createRequire(import.meta.url)('smol-toml'))

const harborConfig = late(() =>
  z.object({
    verifier: z
      .object({
        timeout_sec: z.number().positive().max(86_400).default(600),
        env: z.record(z.string(), z.string()).default({}),
      })
      .prefault({}),
    environment: z
      .object({ docker_image: z.string().optional(), allow_internet: z.boolean().default(true) })
      .prefault({}),
  }),
)

/** The task folders in a folder, by name; one alone if the folder itself is one. */
export function findTaskFolders(path: string): readonly string[] {
  const folder = resolve(path)
  if (!existsSync(folder) || !statSync(folder).isDirectory()) {
    throw new Error(`there is no folder ${path}`)
  }
  if (isTaskFolder(folder)) return [folder]
  const found = readdirSync(folder)
    .map(name => join(folder, name))
    .filter(each => statSync(each).isDirectory() && isTaskFolder(each))
    .sort()
  if (found.length > 0) return found
  throw new Error(
    `${path} holds no task: a folder with task.toml and instruction.md, or with task.yaml`,
  )
}

/** How many task folders there are. */
export function countTaskFolders(path: string): number {
  return findTaskFolders(path).length
}

function isTaskFolder(folder: string): boolean {
  return existsSync(join(folder, 'task.toml')) || existsSync(join(folder, 'task.yaml'))
}

/** Reads a task folder; throws saying which file was wrong. */
export function readTaskFolder(folder: string): TaskFolder {
  return existsSync(join(folder, 'task.toml')) ? readHarbor(folder) : readTerminalBench(folder)
}

function readHarbor(folder: string): TaskFolder {
  const file = join(folder, 'task.toml')
  const read = harborConfig().safeParse(toml().parse(textOf(file)))
  if (!read.success) {
    const [issue] = read.error.issues
    throw new Error(`${file}: ${issue?.path.join('.')}: ${issue?.message}`)
  }
  const { verifier, environment } = read.data
  needs(folder, 'tests/test.sh')
  return {
    name: basename(folder),
    folder,
    format: 'harbor',
    instruction: textOf(join(folder, 'instruction.md')).trim(),
    context: join(folder, 'environment'),
    hidden: [],
    verifier: { seconds: verifier.timeout_sec, variables: verifier.env },
    wantsNetwork: environment.allow_internet,
    ...(environment.docker_image !== undefined && { image: environment.docker_image }),
  }
}

function readTerminalBench(folder: string): TaskFolder {
  const file = join(folder, 'task.yaml')
  const fields = readTopLevel(textOf(file))
  const instruction = fields.get('instruction')?.trim()
  if (!instruction) throw new Error(`${file}: there is no instruction`)
  const seconds = Number(fields.get('max_test_timeout_sec') ?? 180)
  if (!(seconds > 0 && seconds <= 86_400)) {
    throw new Error(`${file}: max_test_timeout_sec is ${fields.get('max_test_timeout_sec')}`)
  }
  needs(folder, 'run-tests.sh')
  return {
    name: basename(folder),
    folder,
    format: 'terminal-bench',
    instruction,
    context: folder,
    hidden: ['tests', 'run-tests.sh', 'solution.sh', 'solution.yaml', 'task.yaml'].map(name =>
      resolve(folder, name),
    ),
    verifier: { seconds, variables: { TEST_DIR: '/tests' } },
    wantsNetwork: true,
  }
}

function needs(folder: string, file: string): void {
  if (!existsSync(join(folder, file))) throw new Error(`${folder} has no ${file}`)
}

function textOf(file: string): string {
  if (!existsSync(file)) throw new Error(`there is no ${file}`)
  const { size } = statSync(file)
  if (size > mostBytes) throw new Error(`${file} has ${size} bytes; a task says less`)
  return readFileSync(file, 'utf8')
}

/** The plain values and the block texts at the top level of a YAML file; nothing else is needed. */
export function readTopLevel(text: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>()
  const lines = text.split('\n')
  for (let at = 0; at < lines.length; at++) {
    const found = /^([A-Za-z_][\w-]*):\s*(.*)$/.exec(lines[at]!)
    if (!found) continue
    const [, key, rest] = found
    if (!/^[|>][+-]?\d?\s*$/.test(rest!)) {
      fields.set(key!, rest!.trim().replace(/^(["'])(.*)\1$/, '$2'))
      continue
    }
    const block: string[] = []
    while (at + 1 < lines.length && /^(\s|$)/.test(lines[at + 1]!)) block.push(lines[++at]!)
    fields.set(key!, unindented(block, rest!.startsWith('>')))
  }
  return fields
}

function unindented(block: readonly string[], isFolded: boolean): string {
  const depth = Math.min(
    ...block.filter(line => line.trim() !== '').map(line => line.length - line.trimStart().length),
  )
  const lines = block.map(line => line.slice(Number.isFinite(depth) ? depth : 0))
  const text = lines.join('\n').trimEnd()
  return isFolded ? text.replace(/([^\n])\n(?=[^\n])/g, '$1 ') : text
}
