import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Command } from '../src/cli/command.ts'
import { loadCommand } from '../src/cli/commands.ts'
import { readFlags } from '../src/cli/flags.ts'

const filesIn = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(name => join(folder, name))

/** README and the pages of `docs`. */
export const pages: readonly string[] = [
  'README.md',
  ...filesIn('docs')
    .filter(name => name.endsWith('.md'))
    .sort(),
]

/** A block of code in a page. */
export interface Block {
  readonly page: string
  /** The line of its fence, from 1. */
  readonly line: number
  readonly language: string
  readonly code: string
  /** What the comment right before it says: `not run: why`, or `file: NAME`. */
  readonly note: string | undefined
}

/** The blocks of a page, in order. */
export function blocksOf(page: string): readonly Block[] {
  const text = readFileSync(page, 'utf8')
  const found = text.matchAll(/(?:^<!-- (.*) -->\n)?^( *)```(\w*)[^\n]*\n([\s\S]*?)^\2```$/gm)
  return [...found].map(({ index, 0: whole, 1: note, 2: indent, 3: language, 4: code }) => ({
    page,
    line: text.slice(0, index).split('\n').length + (note === undefined ? 0 : 1),
    language: language!,
    code: code!.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    note: whole.startsWith('<!--') ? note : undefined,
  }))
}

/** The commands of a block of shell, with lines joined that go on, and without comments. */
export function commandsIn(code: string): readonly string[] {
  return code
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .map(line => line.replace(/(^|\s)#.*$/, '').trim())
    .filter(line => line !== '')
    .flatMap(line => line.split(/ (?:&&|\||&|;) /))
}

/** The words of a command, with the quotes of a shell taken off, without variables before it and files behind it. */
export function wordsIn(command: string): readonly string[] {
  const words = [...command.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) =>
    word.replaceAll(/'([^']*)'|"([^"]*)"/g, (_, single, double) => single ?? double),
  )
  const first = words.findIndex(word => !/^[A-Z_]+=/.test(word))
  const end = words.findIndex(word => /^(?:[<>]|2>|&$)/.test(word))
  return words.slice(first, end < 0 ? undefined : end)
}

const scripts = Object.keys(
  (JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: object }).scripts,
)
const programs = new Set(
  ['scripts', 'bench', 'examples', 'integrations', 'test/python']
    .flatMap(filesIn)
    .map(file => basename(file)),
)

/** What of a command does not exist here: a command, a flag, a value, a script, a file; undefined if all does. */
export async function mistakeIn(command: string): Promise<string | undefined> {
  const [program, name = '', ...rest] = wordsIn(command.replace(/^npx /, ''))
  if (program === 'espalier') return await mistakeOf([name, ...rest])
  if (program === 'npm' && name === 'run') {
    const script = rest.find(word => !word.startsWith('-')) ?? ''
    return scripts.includes(script) ? undefined : `no script ${script}`
  }
  const isProgram = /^(tsx|node|python3?)$/.test(program ?? '') && /\.(ts|mjs|py)$/.test(name)
  if (!isProgram || existsSync(name) || programs.has(basename(name))) return undefined
  return `no file ${name}`
}

/** Stands for what the reader names: `RUN`, `N`, `…`, `./FILE`. */
const isOpen = (word: string): boolean => /…|\b(?:[A-Z]{2,}|[NXC])\b/.test(word)

/** What the program would refuse of these words. */
async function mistakeOf([name = '', ...words]: readonly string[]): Promise<string | undefined> {
  if (name.startsWith('-') || isOpen(name)) return undefined
  const command = await loadCommand(name)
  if (!command) return `no command ${name}`
  // In the middle of a sentence a command stands with what matters there.
  const lenient = { ...command, positionalCount: [0, 99] as const }
  try {
    if (!words.some(isOpen)) readFlags(lenient, words)
    else for (const word of words) if (/^--[a-z]/.test(word)) checkFlag(lenient, word)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

/** Throws if a command has no such flag, whatever its value. */
function checkFlag(command: Command, word: string): void {
  try {
    readFlags(command, [word])
  } catch (error) {
    if ((error as Error).message.includes('has no flag')) throw error
  }
}

/** Where the links of a page lead in the repository, with the part of the page if one is named. */
export function linksOf(
  page: string,
): readonly { readonly path: string; readonly part?: string }[] {
  const text = readFileSync(page, 'utf8').replaceAll(/^```[\s\S]*?^```$/gm, '')
  return [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].map(
    ([, file, part]) => ({
      path: file === '' ? page : join(page, '..', file!),
      ...(part !== undefined && { part }),
    }),
  )
}

/** The parts of a page that a link can name. */
export function partsOf(page: string): readonly string[] {
  const titles = readFileSync(page, 'utf8').matchAll(/^#+ (.*)$/gm)
  return [...titles].map(([, title]) =>
    title!
      .toLowerCase()
      .replaceAll(/[^\p{Letter}\p{Number} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}
