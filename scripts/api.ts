// npm run api: writes api.txt, every public name with its type, from the declarations of the package.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Every public name of the package with its type, entry by entry, as `api.txt` holds it. */
export function publicApi(): string {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-api-'))
  try {
    for (const { project, place } of packages)
      emitDeclarations(join(root, project), join(folder, place))
    const parts = packages.flatMap(each => describePackage(folder, each))
    return `${head}\n${parts.join('\n')}`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const head = '# Every public name and its type. Written by `npm run api`; a test compares it.\n'

interface Manifest {
  readonly name: string
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>
}

/** Both packages, with the folder that the declarations of each are made in. */
const packages = [
  { project: '.', place: 'espalier' },
  { project: 'packages/text', place: '@espalier/text' },
] as const

type Package = (typeof packages)[number]

function describePackage(folder: string, { project, place }: Package): readonly string[] {
  const manifest = JSON.parse(readFileSync(join(root, project, 'package.json'), 'utf8')) as Manifest
  return Object.entries(manifest.exports).flatMap(([entry, target]) =>
    typeof target === 'string'
      ? []
      : [describeEntry({ folder, place }, { entry, types: target.types })],
  )
}

function emitDeclarations(project: string, folder: string): void {
  const words = ['-p', join(project, 'tsconfig.build.json'), '--outDir', folder]
  const { status, stdout } = spawnSync(
    process.execPath,
    ['node_modules/typescript/bin/tsc', ...words],
    { cwd: root, encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(`declarations could not be made:\n${stdout}`)
}

function describeEntry(
  { folder, place }: { readonly folder: string; readonly place: string },
  { entry, types }: { readonly entry: string; readonly types: string },
): string {
  const file = join(folder, place, types.replace('./dist/', ''))
  const names = [...exportsOf(file)].sort(([a], [b]) => (a < b ? -1 : 1))
  const texts = names.map(([name, found]) => declarationOf(found, name))
  return [`## ${place}${entry.slice(1)}`, '', ...texts, ''].join('\n')
}

/** Where a name is declared, and what it is called there. */
interface Place {
  readonly file: string
  readonly name: string
}

/** The names that a module exports, with the place of each. */
function exportsOf(file: string): ReadonlyMap<string, Place> {
  const text = withoutComments(readFileSync(file, 'utf8'))
  const found = new Map<string, Place>()
  for (const [, all, from] of text.matchAll(
    /^export (\*|(?:type )?\{[^}]*\})(?: from '([^']+)')?;?/gm,
  )) {
    const source = from === undefined ? file : declarationFile(file, from)
    if (all === '*') for (const [name, place] of exportsOf(source)) found.set(name, place)
    else for (const place of namesIn(all!)) found.set(place.as, { file: source, name: place.name })
  }
  for (const name of declaredIn(text)) found.set(name, { file, name })
  return found
}

/** The file of declarations that a specifier of another such file leads to. */
function declarationFile(file: string, from: string): string {
  if (from.startsWith('.')) return resolve(dirname(file), from.replace(/\.(?:ts|js)$/, '.d.ts'))
  const folder = file.slice(0, file.lastIndexOf('/espalier/') + 1)
  return join(folder, from, 'index.d.ts')
}

function namesIn(list: string): readonly { readonly name: string; readonly as: string }[] {
  return list
    .replace(/^type /, '')
    .slice(1, -1)
    .split(',')
    .map(each => each.trim().replace(/^type /, ''))
    .filter(each => each !== '')
    .map(each => {
      const [name = '', as = name] = each.split(' as ')
      return { name, as }
    })
}

const keyword =
  '(?:declare )?(?:abstract )?(?:async )?(?:function|const|let|class|interface|type|enum)'

function declaredIn(text: string): readonly string[] {
  const pattern = new RegExp(`^export ${keyword} ([\\w$]+)`, 'gm')
  return [...text.matchAll(pattern)].map(found => found[1]!)
}

/** The text of a declaration, followed through re-exports, without comments. */
function declarationOf({ file, name }: Place, shown: string): string {
  const text = withoutComments(readFileSync(file, 'utf8'))
  const pattern = new RegExp(
    `^(?:export )?${keyword} ${name.replaceAll('$', '\\$')}(?![\\w$])`,
    'gm',
  )
  const starts = [...text.matchAll(pattern)].map(found => found.index)
  if (starts.length === 0) {
    const further = exportsOf(file).get(name)
    if (further && (further.file !== file || further.name !== name)) {
      return declarationOf(further, shown)
    }
    throw new Error(`${name} is exported, but ${file} does not declare it`)
  }
  return starts
    .map(start => statementAt(text, start).replace(/^export (?:declare )?/, ''))
    .join('\n')
}

/** A statement from its start to the end of its last line. */
function statementAt(text: string, start: number): string {
  const lines: string[] = []
  let depth = 0
  for (const line of text.slice(start).split('\n')) {
    lines.push(line)
    depth += count(line, /[{([]/g) - count(line, /[})\]]/g)
    if (depth === 0 && /[;}]$/.test(line)) break
  }
  return lines.join('\n')
}

function count(line: string, pattern: RegExp): number {
  return line.match(pattern)?.length ?? 0
}

function withoutComments(text: string): string {
  return text.replace(/^\s*\/\*\*[\s\S]*?\*\/\n/gm, '').replace(/^\s*\/\/.*\n/gm, '')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(join(root, 'api.txt'), publicApi())
  console.log('api.txt written')
}
