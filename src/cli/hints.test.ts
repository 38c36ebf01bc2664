import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Ran, runCommand } from '../../test/command-line.ts'
import { wordsOf } from '../../test/end-to-end/page-commands.ts'

const home = process.cwd()
beforeAll(() => {
  process.chdir(mkdtempSync(join(tmpdir(), 'espalier-hints-')))
  const tasks = [1, 2].map(id => JSON.stringify({ id, prompt: '1+1?', answer: '2' }))
  writeFileSync('tasks.jsonl', `${tasks.join('\n')}\n`)
  writeFileSync('answers.jsonl', '{"text":"2"}\n')
})
afterAll(() => process.chdir(home))

/** Everything that is printed to be pasted: whole lines after a word, and what stands in backticks. */
function hintsIn({ stdout, stderr }: Ran): readonly string[] {
  const text = `${stdout}\n${stderr}`
  const lines = text.matchAll(/^(?:next| {4}|measure it|serve it) +((?:npx )?espalier .*)$/gm)
  const quoted = text.matchAll(/`((?:npx )?espalier [^`]*)`/g)
  return [...lines, ...quoted].map(([, hint]) => hint!)
}

/** Words that stand for what only the person knows. */
const isOpen = (hint: string): boolean => /\b(NAME|MORE|RUN|GROUP|FILE|DIR)\b/.test(hint)

const rolling = ['--policy', 'scripted:answers.jsonl', '--environment', 'calculator']
const commands: readonly (readonly string[])[] = [
  ['roll', ...rolling, '--tasks', 'tasks.jsonl', '--group', '2'],
  ['eval', ...rolling, '--tasks', 'tasks.jsonl', '--trials', '2'],
  ['show', 'runs/0001'],
  ['show', 'runs/0001', 'nothing'],
  ['fork', 'runs/0001', '1/0/0', '--at', '0', '--samples', '2'],
  ['convert', 'runs/0001', '--to', 'steps', '--out', 'runs/steps'],
  ['export', 'runs/0001', '--to', 'jsonl', '--out', 'rows.jsonl'],
  ['import', 'rows.jsonl', '--from', 'jsonl', '--out', 'runs/imported'],
  ['roll', ...rolling, '--tasks', 'tasks.jsonl', '--out', 'runs/0001'],
  [
    'roll',
    ...rolling,
    '--tasks',
    'tasks.jsonl',
    '--budget',
    '{"trajectories":2}',
    '--out',
    'runs/cut',
  ],
]

it('every hint that a command prints works as it is printed', { timeout: 120_000 }, async () => {
  const hints = new Set<string>()
  for (const words of commands) for (const hint of hintsIn(await runCommand(words))) hints.add(hint)
  expect(hints.size).toBeGreaterThan(6)
  for (const hint of hints) {
    const words = wordsOf(hint)
    if (isOpen(hint)) continue
    // Doors stay open until they are told to close: told before, they open and close.
    const isDoor = ['view', 'serve'].includes(words[0]!)
    const doors = isDoor ? ['--port', '0'] : []
    const { code, stderr } = await runCommand([...words, ...doors], {
      signal: isDoor ? AbortSignal.abort() : new AbortController().signal,
    })
    expect([hint, code, code === 0 ? '' : stderr]).toEqual([hint, 0, ''])
  }
})
