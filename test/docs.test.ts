import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'

const root = resolve(import.meta.dirname, '..')
const inside = (path: string): string => join(root, path)
const pages = [
  'README.md',
  ...readdirSync(inside('docs')).flatMap(name => (name.endsWith('.md') ? [`docs/${name}`] : [])),
]

interface Block {
  /** The line of the page where it begins. */
  readonly line: number
  readonly code: string
}

const isProgram = /^(?:import|\}) [^\n]*from 'espalier(?:\/testing)?'/m

/** The TypeScript blocks of a page that use the library and are not marked `<!-- not run: why -->`. */
function blocksOf(page: string): readonly Block[] {
  const lines = readFileSync(inside(page), 'utf8').split('\n')
  return lines.flatMap((line, at) => {
    if (line !== '```ts') return []
    const before = lines.slice(0, at).findLast(each => each.trim() !== '') ?? ''
    if (/^<!-- not run: \S.* -->$/.test(before)) return []
    const code = lines.slice(at + 1, lines.indexOf('```', at + 1)).join('\n')
    return isProgram.test(code) ? [{ line: at + 1, code }] : []
  })
}

const project = mkdtempSync(join(tmpdir(), 'espalier-docs-'))
afterAll(() => rmSync(project, { recursive: true, force: true }))

/** An empty project that has the package, and the packages that its pages tell people to install. */
function makeProject(): void {
  mkdirSync(join(project, 'node_modules/@types'), { recursive: true })
  mkdirSync(join(project, 'node_modules/@modelcontextprotocol'))
  const installed = ['zod', 'vitest', '@types/node', '@modelcontextprotocol/sdk']
  for (const name of installed) {
    symlinkSync(inside(`node_modules/${name}`), join(project, 'node_modules', name))
  }
  symlinkSync(root, join(project, 'node_modules/espalier'))
  writeFileSync(join(project, 'package.json'), '{ "type": "module", "private": true }')
  const { compilerOptions } = JSON.parse(readFileSync(inside('tsconfig.json'), 'utf8'))
  const settings = { ...compilerOptions, noUnusedLocals: false, noUnusedParameters: false }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions: settings }))
}

/** Writes the blocks of a page into a folder of their own, and a program that imports them in turn. */
function writePage(page: string, blocks: readonly Block[]): string {
  const folder = join(project, page.replaceAll(/[/.]/g, '-'))
  mkdirSync(folder)
  for (const { line, code } of blocks) {
    writeFileSync(join(folder, `line-${line}.ts`), `${code}\nexport {}\n`)
  }
  const steps = blocks.map(({ line }) => {
    return `console.log('## ${page}:${line}')\nawait import('./line-${line}.ts')\n`
  })
  writeFileSync(join(folder, 'all.ts'), `${steps.join('')}console.log('## done')\nexport {}\n`)
  return folder
}

makeProject()
const written = pages.flatMap(page => {
  const blocks = blocksOf(page)
  return blocks.length === 0 ? [] : [[page, writePage(page, blocks)] as const]
})

describe('the TypeScript of the pages', () => {
  it('type-checks as strictly as the package itself', () => {
    const { stdout, status } = spawnSync(
      process.execPath,
      [inside('node_modules/typescript/bin/tsc'), '-p', project],
      { encoding: 'utf8', cwd: project },
    )
    expect({ stdout, status }).toEqual({ stdout: '', status: 0 })
  }, 180_000)

  it.each(written)(
    '%s runs',
    (_, folder) => {
      const { stdout, stderr, status } = spawnSync(
        process.execPath,
        [inside('node_modules/tsx/dist/cli.mjs'), 'all.ts'],
        { encoding: 'utf8', cwd: folder, timeout: 120_000 },
      )
      expect(status, `${stdout.slice(-600)}\n${stderr}`).toBe(0)
      expect(stdout.trimEnd().split('\n').at(-1)).toBe('## done')
    },
    180_000,
  )
})

describe('the links of the pages', () => {
  it.each(pages)('%s links to files that exist', page => {
    const text = readFileSync(inside(page), 'utf8')
    const targets = [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(match => match[1]!)
    const missing = targets.filter(target => !existsSync(resolve(inside(page), '..', target)))
    expect(missing).toEqual([])
  })
})
