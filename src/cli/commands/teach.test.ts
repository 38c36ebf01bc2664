import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { runCommand } from '../../../test/command-line.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-teach-'))
afterAll(() => rmSync(folder, { recursive: true }))
const at = (name: string): string => join(folder, name)
const messages = [
  { role: 'user', content: 'hello' },
  { role: 'assistant', content: 'hi' },
]
writeFileSync(at('shown.jsonl'), `${JSON.stringify({ messages, tools: [] })}\n`)
writeFileSync(at('file'), '')

const teach = (...words: readonly string[]) =>
  runCommand(['teach', '--demonstrations', at('shown.jsonl'), '--epochs', '1', ...words])

it.each(['file', join('file', 'below')])(
  'a folder that cannot be written is refused before anything is taught: %s',
  async out => {
    const { code, stderr } = await teach('--out', at(out))
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^\S*: --out .* is a file, not a/)])
  },
)

it('no model is written into the folder of a run', async () => {
  const words = ['--policy', 'embedded', '--environment', 'desk', '--tasks', '1', '--group', '1']
  await runCommand(['roll', ...words, '--out', at('run')])
  const { code, stderr } = await teach('--out', at('run'))
  expect([code, stderr]).toEqual([2, expect.stringContaining('holds a run')])
})

it('says what it cannot know of the next command', async () => {
  const { stderr } = await teach('--out', at('model'))
  expect(stderr).toMatch(
    /train --policy embedded:\S+ --environment NAME --tasks FILE --max-turns 3 --max-new-tokens 16$/m,
  )
  const desk = await teach('--environment', 'desk', '--out', at('desk'))
  expect(desk.stderr).toMatch(
    /train --policy embedded:\S+ --environment desk --max-turns 3 --max-new-tokens 16$/m,
  )
})

it('the environment is disposed of when the model is taught', async () => {
  writeFileSync(
    at('closing.mjs'),
    `export const world = {
      name: 'closing', readTask: data => data, reward: {},
      open() { throw new Error('not opened without tasks') },
      [Symbol.asyncDispose]: async () => void (globalThis.closed = "closed"),
    }\n`,
  )
  await teach('--environment', `${at('closing.mjs')}#world`, '--out', at('closed'))
  expect((globalThis as { readonly closed?: string }).closed).toBe('closed')
})
