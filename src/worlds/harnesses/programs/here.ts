import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import type { OpenedHarness } from '../contract.ts'

type Program = Pick<OpenedHarness, 'program' | 'shown'>

/** A program of this machine by its name, with what has to be seen of this machine for it to run; undefined if there is none. */
export function findHere(
  name: string,
  paths = (process.env.PATH ?? '').split(delimiter),
): Program | undefined {
  const file = name.includes('/')
    ? resolve(name)
    : paths.map(path => join(path, name)).find(each => isAbsolute(each) && isFile(each))
  if (file === undefined || !isFile(file)) return undefined
  return { program: [file], shown: neededBy(file) }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true
}

/** Folders of the system, which every sandbox of this machine sees. */
const system = /^\/(usr|bin|sbin|lib|lib32|lib64|nix)(\/|$)/

/** What a program is found by: its package, and the interpreter that its first line names, if that is of no system folder. */
function neededBy(file: string): readonly string[] {
  const real = realpathSync(file)
  const interpreter = /^#!\s*(\/\S+)/.exec(beginningOf(real))?.[1]
  const found = [placeOf(file), placeOf(real)]
  if (interpreter !== undefined && existsSync(interpreter)) {
    found.push(placeOf(interpreter), installationOf(realpathSync(interpreter)))
  }
  return [...new Set(found)].filter(path => !system.test(path))
}

/** The folder that an interpreter was installed into, with its libraries. */
function installationOf(interpreter: string): string {
  const folder = dirname(dirname(interpreter))
  return existsSync(join(folder, 'lib')) ? folder : interpreter
}

/** What is shown of a file: the packages it is one of, the Python environment it belongs to, or it alone. */
function placeOf(file: string): string {
  const packages = /^(.*?\/node_modules)\//.exec(file)?.[1]
  if (packages !== undefined) return packages
  const folder = dirname(dirname(file))
  return existsSync(join(folder, 'pyvenv.cfg')) ? folder : file
}

function beginningOf(file: string): string {
  return readFileSync(file).subarray(0, 200).toString('latin1')
}

/**
 * A command line on this machine: its program, and its words, of which those that name files of this machine are
 * shown at their own place. The packages beside a file are shown with it, its neighbours are not: tests of the
 * tasks may be among them.
 */
export function commandHere(line: string): Program {
  const [name, ...words] = wordsOf(line)
  const found = name === undefined ? undefined : findHere(name)
  if (!found) throw new Error(`there is no program ${JSON.stringify(name ?? '')} on this machine`)
  const files = words.map(word =>
    existsSync(word) && /[./]/.test(word) ? resolve(word) : undefined,
  )
  const shown = files.flatMap(file =>
    file === undefined ? [] : [placeOf(file), ...packagesNear(file)],
  )
  return {
    program: [...found.program, ...words.map((word, at) => files[at] ?? word)],
    shown: [...new Set([...found.shown, ...shown])].filter(path => !system.test(path)),
  }
}

/** The folders of packages that a script would find. */
function packagesNear(file: string): readonly string[] {
  const found: string[] = []
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
    const packages = join(folder, 'node_modules')
    if (existsSync(packages)) found.push(packages)
  }
  return found
}

/** The words of a command line, of which quotes hold some together. */
export function wordsOf(line: string): readonly string[] {
  const words = line.match(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g) ?? []
  return words.map(word => word.replace(/"([^"]*)"|'([^']*)'/g, '$1$2'))
}
