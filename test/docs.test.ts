import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { configPage } from '../scripts/config-page.ts'
import { importFile } from '../src/run/settings/user-part.ts'

/** A block of code in a page. */
interface Block {
  readonly page: string
  readonly line: number
  readonly code: string
}

/** The blocks of TypeScript in a page. */
function blocksOf(page: string): readonly Block[] {
  const lines = readFileSync(page, 'utf8').split('\n')
  const blocks: Block[] = []
  for (let line = 0; line < lines.length; line++) {
    if (!/^```(ts|typescript)\b/.test(lines[line]!)) continue
    const end = lines.indexOf('```', line + 1)
    const code = lines.slice(line + 1, end).join('\n')
    blocks.push({ page, line: line + 1, code })
    line = end
  }
  return blocks
}

/** Where the links of a page lead in the repository. */
function linksOf(page: string): readonly string[] {
  const links = readFileSync(page, 'utf8').matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)
  return [...links].map(([, link]) => join(dirname(page), link!))
}

/** The folder or file at the root that a path begins with. */
const roomOf = (path: string): string => path.split(/[\\/]/)[0]!

const found = readdirSync('docs', { recursive: true, encoding: 'utf8' })
const pages = ['README.md', ...found.map(name => join('docs', name))].filter(name =>
  name.endsWith('.md'),
)
const blocks = pages.flatMap(blocksOf)
const home = process.cwd()
afterAll(() => process.chdir(home))

describe('the pages', () => {
  for (const { page, line, code } of blocks) {
    if (!/from 'espalier(\/[\w-]+)?'/.test(code)) continue
    it(`${page}:${line} runs as it stands`, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'espalier-docs-'))
      const file = join(folder, 'block.ts')
      writeFileSync(file, code)
      // Packages that pages name beside ours, such as `ai`, are found as in a project.
      symlinkSync(join(home, 'node_modules'), join(folder, 'node_modules'))
      process.chdir(folder)
      try {
        await importFile(file)
      } finally {
        process.chdir(home)
      }
    })
  }

  it('docs/reference/config.md is what the table of settings says: tsx scripts/config-page.ts', () => {
    expect(readFileSync('docs/reference/config.md', 'utf8')).toBe(configPage())
  })

  it('of users hold no lines that only run our tests', () => {
    expect(pages.filter(page => /npx vitest/.test(readFileSync(page, 'utf8')))).toEqual([])
  })

  it('lead only to what is in the package, where people read them', () => {
    const { files } = JSON.parse(readFileSync('package.json', 'utf8')) as { files: string[] }
    const packed = new Set([...files, 'package.json'])
    const outside = pages.flatMap(page => linksOf(page).filter(link => !packed.has(roomOf(link))))
    expect(outside).toEqual([])
  })

  it('links between pages lead somewhere', () => {
    const broken = pages.flatMap(page =>
      linksOf(page)
        .filter(link => !existsSync(link))
        .map(link => `${page}: ${link}`),
    )
    expect(broken).toEqual([])
  })
})
