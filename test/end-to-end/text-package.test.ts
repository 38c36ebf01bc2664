import { execFile, execFileSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const source = 'packages/text'
const folder = mkdtempSync(join(tmpdir(), 'espalier-text-'))
const installed = join(folder, 'node_modules', '@espalier', 'text')

beforeAll(() => {
  const words = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder]
  execFileSync('npm', words, { cwd: source })
  mkdirSync(installed, { recursive: true })
  const packed = readdirSync(folder).find(name => name.endsWith('.tgz')) as string
  execFileSync('tar', ['-xzf', join(folder, packed), '--strip-components=1', '-C', installed])
  cpSync('models/chatml-bytes', join(folder, 'model'), { recursive: true })
})

afterAll(() => rmSync(folder, { recursive: true }))

/** What a program prints in the empty folder that only the package was installed into. */
async function printed(program: string): Promise<string> {
  const file = join(folder, 'program.mjs')
  writeFileSync(file, program)
  const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: folder })
  return stdout
}

const { exports: entries, dependencies } = JSON.parse(
  readFileSync(`${source}/package.json`, 'utf8'),
) as { readonly exports: object; readonly dependencies?: object }

const blocks = [...readFileSync(`${source}/README.md`, 'utf8').matchAll(/```js\n([\s\S]*?)```/g)]

/** What the comments beside its calls of `console.log` say that a block prints. */
const promised = (code: string): string =>
  Array.from(code.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm), ([, text]) => `${text}\n`).join('')

describe('the package alone in an empty folder', () => {
  it('has no dependencies, and every entry can be imported', async () => {
    expect(dependencies).toBeUndefined()
    const names = Object.keys(entries).filter(name => name !== './package.json')
    const program = names
      .map(
        name => `console.log(Object.keys(await import('@espalier/text${name.slice(1)}')).length)`,
      )
      .join('\n')
    const counts = (await printed(program)).trim().split('\n').map(Number)
    expect(counts).toHaveLength(names.length)
    expect(counts.every(count => count > 0)).toBe(true)
  })

  it('carries the declarations of every entry', () => {
    for (const name of Object.keys(entries)) {
      if (name === './package.json') continue
      const file = name === '.' ? 'index.d.ts' : `${name.slice(2)}/index.d.ts`
      expect(readFileSync(join(installed, 'dist', file), 'utf8')).toContain('export')
    }
  })

  it.each(blocks.map(([, code = ''], index) => [index + 1, code] as const))(
    'prints what its page says, in example %i',
    async (_, code) => {
      expect(promised(code)).not.toBe('')
      expect(await printed(code)).toBe(promised(code))
    },
  )
})
