import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { transform } from 'esbuild'
import { parse } from 'smol-toml'
import { afterAll, describe, expect, it } from 'vitest'
import { configPage } from '../scripts/config-page.ts'
import { importFile } from '../src/run/settings/user-part.ts'
import { runCommand } from './command-line.ts'
import {
  type Block,
  blocksOf,
  commandsIn,
  linksOf,
  mistakeIn,
  pages,
  partsOf,
  wordsIn,
} from './pages.ts'

const home = process.cwd()
afterAll(() => process.chdir(home))

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
  readonly files: readonly string[]
  readonly exports: Readonly<Record<string, { readonly types?: string }>>
}

const blocks = pages.flatMap(blocksOf)
const of = (...languages: readonly string[]): readonly Block[] =>
  blocks.filter(({ language }) => languages.includes(language))
const places = (found: readonly Block[]) =>
  found.map(block => [`${block.page}:${block.line}`, block] as const)

/** Goes into a folder of its own, as if the pages were followed in a project. */
function enterProject(): string {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-docs-'))
  // Packages that pages name beside ours, such as `ai`, are found as in a project.
  symlinkSync(join(home, 'node_modules'), join(folder, 'node_modules'))
  process.chdir(folder)
  return folder
}

describe('blocks of code', () => {
  it('say what they are', () => {
    const known = ['ts', 'js', 'sh', 'console', 'json', 'jsonl', 'toml', 'python', 'text']
    expect(blocks.filter(({ language }) => !known.includes(language)).map(at)).toEqual([])
  })

  const programs = of('ts').filter(({ note }) => !note?.startsWith('not run'))
  it.each(places(programs))('%s runs as it stands', async (_, { code }) => {
    const folder = enterProject()
    try {
      const file = join(folder, 'block.ts')
      writeFileSync(file, code)
      await importFile(file)
    } finally {
      process.chdir(home)
    }
  })

  it('in TypeScript have the right types, in a strict project', () => {
    const folder = enterProject()
    process.chdir(home)
    for (const { page, line, code } of programs)
      writeFileSync(join(folder, `${page.replaceAll(/\W/g, '-')}-${line}.ts`), code)
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
    const compiler = join(home, 'node_modules/typescript/bin/tsc')
    const { status, stdout } = spawnSync(process.execPath, [compiler, '-p', folder])
    expect(status, `${stdout}`).toBe(0)
  })

  it('in TypeScript and JavaScript can be read, where they are not run', async () => {
    for (const block of of('ts', 'js'))
      await expect(transform(block.code, { loader: 'ts' }), at(block)).resolves.toBeDefined()
  })

  it.each(places(of('sh')))('%s: every command and flag exists', async (_, { code }) => {
    const mistakes: string[] = []
    for (const command of commandsIn(code)) {
      const mistake = await mistakeIn(command)
      if (mistake !== undefined) mistakes.push(`${command}: ${mistake}`)
    }
    expect(mistakes).toEqual([])
  })

  it.each([...new Set(of('console').map(({ page }) => page))])(
    'of %s print what the page says',
    async page => {
      const parts = blocksOf(page)
      enterProject()
      try {
        for (const { language, code, note } of parts) {
          if (note?.startsWith('file: ')) writeFileSync(note.slice(6), code)
          if (language === 'console' && !note?.startsWith('not run')) await follow(code)
        }
      } finally {
        process.chdir(home)
      }
    },
  )

  it('of data can be read', () => {
    for (const { language, code, ...block } of of('json', 'jsonl', 'toml')) {
      const read = (): void => {
        if (language === 'toml') parse(code)
        else if (language === 'json') JSON.parse(code)
        else for (const line of code.trim().split('\n')) JSON.parse(line)
      }
      expect(read, at(block)).not.toThrow()
    }
  })

  it.skipIf(spawnSync('python3', ['--version']).error)('in Python can be read', () => {
    const codes = of('python').map(block => [at(block), block.code])
    const check = 'import ast, json, sys\nfor at, code in json.load(sys.stdin): ast.parse(code, at)'
    const { status, stderr } = spawnSync('python3', ['-c', check], {
      input: JSON.stringify(codes),
      encoding: 'utf8',
    })
    expect(status, stderr).toBe(0)
  })
})

describe('words in the text', () => {
  it('that are commands of the program exist, with their flags', async () => {
    const mistakes: string[] = []
    for (const page of pages) {
      const text = readFileSync(page, 'utf8').replaceAll(/^ *```[\s\S]*?^ *```$/gm, '')
      for (const [, command] of text.matchAll(/`((?:npx )?espalier [^`\n]+|npm run [^`\n]+)`/g)) {
        const mistake = await mistakeIn(command!)
        if (mistake !== undefined) mistakes.push(`${page}: ${command}: ${mistake}`)
      }
    }
    expect(mistakes).toEqual([])
  })
})

/** Runs the commands of a block and compares what they print; `…` stands for any lines, or the rest of one. */
async function follow(code: string): Promise<void> {
  for (const part of code.split(/^\$ /m).slice(1)) {
    const [command = '', ...said] = part.trimEnd().split('\n')
    const { stdout, stderr } = await runCommand(wordsIn(command).slice(1))
    const pattern = said
      .map(line => (line.trim() === '…' ? '(?:.*\\n)*?' : `${quoted(line)}\\n`))
      .join('')
    const printed = `${stdout}${stderr}`
    expect(printed, command).toMatch(new RegExp(`^${pattern}`))
  }
}

/** As a project has them whose dependency we are. */
const compilerOptions = {
  module: 'nodenext',
  target: 'es2023',
  lib: ['es2024', 'esnext.disposable'],
  types: ['node'],
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  paths: Object.fromEntries(
    Object.entries(manifest.exports).map(([entry, { types }]) => [
      `espalier${entry.slice(1)}`,
      [join(home, types ?? '')],
    ]),
  ),
}

/** A line as an expression; before an error stands what kind it is of, not the program's name. */
const quoted = (line: string): string =>
  line
    .trimEnd()
    .replace(/^espalier: /, '…')
    .replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
    .replaceAll('…', '.*')

const at = ({ page, line }: Pick<Block, 'page' | 'line'>): string => `${page}:${line}`

describe('the pages', () => {
  it('docs/reference/config.md is what the table of settings says: tsx scripts/config-page.ts', () => {
    expect(readFileSync('docs/reference/config.md', 'utf8')).toBe(configPage())
  })

  it('of users hold no lines that only run our tests', () => {
    expect(pages.filter(page => /npx vitest/.test(readFileSync(page, 'utf8')))).toEqual([])
  })

  it('lead only to what is in the package, where people read them', () => {
    const packed = new Set([...manifest.files, 'package.json'])
    const outside = pages.flatMap(page =>
      linksOf(page).filter(({ path }) => !packed.has(path.split(/[\\/]/)[0]!)),
    )
    expect(outside).toEqual([])
  })

  it('lead to pages, and to parts of pages, that are there', () => {
    const broken = pages.flatMap(page =>
      linksOf(page)
        .filter(({ path, part }) => !existsSync(path) || (part && !partsOf(path).includes(part)))
        .map(({ path, part }) => `${page}: ${path}${part ? `#${part}` : ''}`),
    )
    expect(broken).toEqual([])
  })

  it('can all be found from the list of pages', () => {
    const listed = new Set(linksOf('docs/README.md').map(({ path }) => path))
    const others = pages.filter(page => page.startsWith('docs/') && page !== 'docs/README.md')
    expect(others.filter(page => !listed.has(page))).toEqual([])
  })
})
