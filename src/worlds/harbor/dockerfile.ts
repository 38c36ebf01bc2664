import { existsSync, readFileSync } from 'node:fs'
import { cp, mkdir, readdir, stat } from 'node:fs/promises'
import { join, posix, relative, resolve } from 'node:path'

/** What a Dockerfile does, as far as folders and commands without an engine can follow it. */
export interface Recipe {
  readonly steps: readonly Step[]
  readonly workingFolder: string
  readonly variables: Readonly<Record<string, string>>
  /** Instructions that were left out: what they install is this machine's or missing. */
  readonly skipped: readonly string[]
}

type Step =
  | { readonly kind: 'copy'; readonly from: readonly string[]; readonly to: string }
  | { readonly kind: 'run'; readonly command: string; readonly in: string }

/** Commands that download programs: there is no network within walls. */
const fetches =
  /\b(apt-get|apt|apk|yum|dnf|pip3?|pipx|uv|npm|pnpm|yarn|cargo|gem|go (get|install)|curl|wget|git clone|conda)\b/

/** Reads a Dockerfile; throws for what cannot be followed without an engine. */
export function readDockerfile(context: string): Recipe {
  const file = join(context, 'Dockerfile')
  if (!existsSync(file)) return { steps: [], workingFolder: '/app', variables: {}, skipped: [] }
  const steps: Step[] = []
  const variables: Record<string, string> = {}
  const skipped: string[] = []
  let workingFolder = '/'
  for (const line of instructions(readFileSync(file, 'utf8'))) {
    const [, word = '', rest = ''] = /^(\w+)\s+([\s\S]*)$/.exec(line) ?? []
    switch (word.toUpperCase()) {
      case 'WORKDIR':
        workingFolder = posix.resolve(workingFolder, rest.trim())
        break
      case 'ENV':
        Object.assign(variables, readVariables(rest))
        break
      case 'COPY':
      case 'ADD':
        steps.push(readCopy(rest, workingFolder))
        break
      case 'RUN':
        if (fetches.test(rest)) skipped.push(line)
        else steps.push({ kind: 'run', command: rest, in: workingFolder })
        break
      default:
        if (!passed.includes(word.toUpperCase())) skipped.push(line)
    }
  }
  const final = workingFolder === '/' ? '/app' : workingFolder
  return { steps, workingFolder: final, variables, skipped }
}

/** The folder that a Dockerfile leaves its commands in. */
export function workingFolderOf(context: string): string {
  const file = join(context, 'Dockerfile')
  const lines = existsSync(file) ? instructions(readFileSync(file, 'utf8')) : []
  const folders = lines.flatMap(line => /^WORKDIR\s+(\S+)/i.exec(line)?.[1] ?? [])
  const folder = folders.reduce((before, each) => posix.resolve(before, each), '/')
  return folder === '/' ? '/app' : folder
}

/** Instructions that change neither files nor commands. */
const passed = ['CMD', 'ENTRYPOINT', 'EXPOSE', 'LABEL', 'MAINTAINER', 'ARG', 'SHELL', 'HEALTHCHECK']

/** Instructions without comments, continued lines joined. */
function instructions(text: string): readonly string[] {
  return text
    .split('\n')
    .filter(line => !/^\s*#/.test(line))
    .join('\n')
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
}

function readVariables(rest: string): Readonly<Record<string, string>> {
  const pairs = [...rest.matchAll(/\b(\w+)=("[^"]*"|\S*)/g)]
  if (pairs.length > 0) {
    return Object.fromEntries(
      pairs.map(([, key, value]) => [key, value!.replace(/^"(.*)"$/, '$1')]),
    )
  }
  const [key, ...value] = rest.trim().split(/\s+/)
  return { [key!]: value.join(' ') }
}

function readCopy(rest: string, workingFolder: string): Step {
  const words = rest
    .trim()
    .split(/\s+/)
    .filter(word => !word.startsWith('--'))
  const to = words.pop() ?? '.'
  if (/--from=/.test(rest) || words.length === 0 || words.some(word => /^https?:/.test(word))) {
    throw new Error(`"COPY ${rest}" needs a container engine: sandbox=docker or podman`)
  }
  const isFolder = to.endsWith('/') || to === '.' || words.length > 1
  const target = posix.resolve(workingFolder, to)
  return { kind: 'copy', from: words, to: isFolder ? `${target}/` : target }
}

/** Where a recipe is staged. */
interface Staging {
  readonly context: string
  readonly into: string
  /** What is left out of a folder that holds it; it is copied only if it is named itself. */
  readonly hidden: readonly string[]
}

/** Copies into a folder what a recipe copies before its first command; returns the top-level names. */
export async function stage(
  { steps, workingFolder }: Recipe,
  { context, into, hidden }: Staging,
): Promise<readonly string[]> {
  await mkdir(join(into, workingFolder), { recursive: true })
  for (const step of steps) {
    if (step.kind === 'run') continue
    for (const from of step.from) {
      await copyIn(resolve(context, from), step.to, { context, into, hidden })
    }
  }
  return await readdir(into)
}

async function copyIn(from: string, to: string, { context, into, hidden }: Staging): Promise<void> {
  if (relative(context, from).startsWith('..')) throw new Error(`${from} lies outside ${context}`)
  const { isDirectory } = await stat(from).then(found => ({ isDirectory: found.isDirectory() }))
  const name = to.endsWith('/') && !isDirectory ? posix.join(to, posix.basename(from)) : to
  const target = join(into, posix.normalize(name))
  await mkdir(join(target, '..'), { recursive: true })
  const filter = (path: string): boolean => path === from || !hidden.includes(path)
  await cp(from, target, { recursive: true, verbatimSymlinks: true, filter })
}
