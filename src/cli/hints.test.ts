import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Ran, runCommand } from '../../test/command-line.ts'
import { wordsOf } from '../../test/end-to-end/page-commands.ts'
import { nextLines } from './commands/demo.ts'

const home = process.cwd()
beforeAll(() => {
  process.chdir(mkdtempSync(join(tmpdir(), 'espalier-hints-')))
  const tasks = [1, 2, 3, 4, 5, 6].map(id =>
    JSON.stringify({ id, prompt: `1+${id}?`, answer: `${1 + id}` }),
  )
  writeFileSync('tasks.jsonl', `${tasks.join('\n')}\n`)
  const messages = [
    { role: 'user', content: '1+1?' },
    { role: 'assistant', content: '2' },
  ]
  const shown = Array.from({ length: 12 }, () => JSON.stringify({ task: '1', messages }))
  writeFileSync('shown.jsonl', `${shown.join('\n')}\n`)
  writeFileSync('answers.jsonl', '{"text":"2"}\n')
})
afterAll(() => process.chdir(home))

/** Everything that is printed to be pasted: whole lines after a word, and what stands in backticks. */
function hintsIn({ stdout, stderr }: Pick<Ran, 'stdout' | 'stderr'>): readonly string[] {
  const text = `${stdout}\n${stderr}`
  const lines = text.matchAll(
    /^(?:next| {4}|measure it|serve it) +((?:cd \S+ && )?(?:npx )?espalier .*)$/gm,
  )
  const quoted = text.matchAll(/`((?:npx )?espalier [^`]*)`/g)
  return [...lines, ...quoted].map(([, hint]) => hint!)
}

/** Words that stand for what only the person knows. */
const isOpen = (hint: string): boolean => /\b(NAME|MORE|RUN|GROUP|FILE|DIR)\b/.test(hint)

const rolling = ['--policy', 'scripted:answers.jsonl', '--environment', 'calculator']
const small = ['--steps', '1', '--tasks-per-step', '2', '--group', '2', '--held-out', '2']
const commands: readonly (readonly string[])[] = [
  ['roll', ...rolling, '--tasks', 'tasks.jsonl', '--group', '2'],
  ['eval', ...rolling, '--tasks', 'tasks.jsonl', '--trials', '2'],
  ['show', 'runs/0001'],
  ['show', 'runs/0001', 'nothing'],
  ['fork', 'runs/0001', '1/0/0', '--at', '0', '--samples', '2'],
  ['fork', 'runs/0001', 'nothing', '--at', '0', '--samples', '2'],
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
  ['init', 'shop'],
  [
    'teach',
    '--environment',
    'calculator',
    '--tasks',
    'tasks.jsonl',
    '--demonstrations',
    'shown.jsonl',
    '--epochs',
    '1',
    '--out',
    'models/taught',
  ],
  ['train', '--policy', 'embedded', '--environment', 'desk', ...small, '--out', 'runs/trained'],
  ['show', 'runs/trained'],
  ['tasks', 'make', '2', '--environment', 'desk', '--out', 'made.jsonl'],
]

/** Runs a hint as it was printed; what would go on for hours is told to be short. */
async function follow(hint: string): Promise<Ran> {
  const [, folder, line] = /^(?:cd (\S+) && )?(.*)$/.exec(hint)!
  const words = wordsOf(line!)
  // Doors stay open until they are told to close: told before, they open and close.
  const isDoor = ['view', 'serve'].includes(words[0]!)
  const more = isDoor ? ['--port', '0'] : words[0] === 'train' ? small : []
  const before = process.cwd()
  if (folder !== undefined) process.chdir(folder)
  try {
    return await runCommand([...words, ...more], isDoor ? { signal: AbortSignal.abort() } : {})
  } finally {
    process.chdir(before)
  }
}

it('every hint that a command prints works as it is printed', { timeout: 120_000 }, async () => {
  const hints = new Set<string>()
  for (const words of commands) for (const hint of hintsIn(await runCommand(words))) hints.add(hint)
  // A demonstration takes its time; a small training leaves the same kind of run.
  for (const hint of hintsIn({ stdout: nextLines('runs/trained').join('\n'), stderr: '' }))
    hints.add(hint)
  expect(hints.size).toBeGreaterThan(12)
  // A model is measured by the split that it was not trained on.
  const measuring = [...hints].filter(hint => / eval .*runs\/trained/.test(hint))
  expect(measuring.map(hint => / --split (\S+)/.exec(hint)?.[1])).toEqual(['held-out'])
  for (const hint of hints) {
    if (isOpen(hint)) continue
    const { code, stderr } = await follow(hint)
    expect([hint, code, code === 0 ? '' : stderr]).toEqual([hint, 0, ''])
  }
})

it('an interrupted train says how to go on, as show does, and that goes on', async () => {
  const stop = new AbortController()
  const onLine = (line: string): void => {
    if (line.startsWith('held out before')) stop.abort(new Error('interrupted'))
  }
  const words = ['train', '--policy', 'embedded', '--environment', 'desk', ...small]
  const { stderr } = await runCommand([...words, '--out', 'runs/stopped'], {
    signal: stop.signal,
    onLine,
  })
  const [hint] = hintsIn({ stdout: '', stderr })
  expect(hint).toMatch(/ resume runs\/stopped$/)
  const shown = await runCommand(['show', 'runs/stopped'])
  expect(shown.stdout).toContain(`go on       ${hint}`)
  expect(shown.stdout).toMatch(/held-out success {2}before \S+ \S+ \S+ {2}not measured since/)
  expect(await follow(hint!)).toMatchObject({ code: 0 })
})

it('hints of a run that was begun in another folder work where they are printed', async () => {
  const budget = '{"trajectories":2,"money":1,"price":{"prompt":0,"sampled":0}}'
  const words = ['roll', ...rolling, '--tasks', 'tasks.jsonl', '--group', '1', '--budget', budget]
  const begunIn = process.cwd()
  await runCommand([...words, '--out', 'runs/far'])
  mkdirSync('elsewhere')
  process.chdir('elsewhere')
  const here = process.cwd()
  try {
    const told: Ran[] = []
    for (const command of [
      ['fork', '../runs/far', '1/0/0', '--at', '0', '--samples', '1'],
      ['fork', '../runs/far', '1/0/0', '--at', '0', '--samples', '1', '--out', 'mine'],
      ['resume', '../runs/far', '--budget', budget.replace('2', '4')],
    ]) {
      told.push(await runCommand(command))
      process.chdir(here)
    }
    expect(['runs/0001/run.json', 'mine/run.json'].map(file => existsSync(file))).toEqual([
      true,
      true,
    ])
    expect(told[2]!.stderr).toContain(`files that settings name are looked for in ${begunIn}`)
    const hints = told.flatMap(hintsIn)
    expect(hints).toHaveLength(4)
    for (const hint of hints) {
      const { code, stderr } = await follow(hint.replace('MORE', '6'))
      expect([hint, code, code === 0 ? '' : stderr]).toEqual([hint, 0, ''])
    }
  } finally {
    process.chdir(begunIn)
  }
})

it('a budget of money is raised as the hint says, and keeps its other limits', async () => {
  const budget = '{"tokens":100000,"money":0.1,"price":{"prompt":0,"sampled":100000}}'
  const words = ['roll', ...rolling, '--tasks', 'tasks.jsonl', '--group', '1', '--budget', budget]
  const limits = ['--max-new-tokens', '1', '--concurrency', '1']
  const hints = hintsIn(await runCommand([...words, ...limits, '--out', 'runs/dear']))
  const hint = hints.find(each => each.includes(' resume '))
  expect(hint).toContain(
    `--budget '{"tokens":100000,"money":MORE,"price":{"prompt":0,"sampled":100000}}'`,
  )
  expect(await follow(hint!.replace('MORE', '100'))).toMatchObject({ code: 0 })
})

it('nobody is told to resume a run that was not begun, or is another', async () => {
  const signal = AbortSignal.abort(new Error('interrupted'))
  const roll = ['roll', ...rolling, '--tasks', 'none.jsonl', '--out', 'runs/none']
  expect(hintsIn(await runCommand(roll, { signal }))).toEqual([])
  await runCommand(['roll', ...rolling, '--tasks', 'tasks.jsonl', '--out', 'runs/taken'])
  const train = ['train', '--policy', 'embedded', '--environment', 'desk', ...small]
  const { code, stderr } = await runCommand([...train, '--out', 'runs/taken'])
  expect([code, stderr]).toEqual([2, expect.stringContaining('already holds a run')])
  expect(hintsIn({ stdout: '', stderr })).toEqual([])
})

it.each([
  ['serve', '--port', '0'],
  ['environment', 'serve', 'desk', '--port', '0', '--tasks', '4'],
  ['gateway', ...rolling, '--tasks', 'tasks.jsonl', '--port', '0', '--out', 'runs/gate'],
])('what a door prints works while it is open: %s', { timeout: 60_000 }, async (...words) => {
  const stop = new AbortController()
  let running: Promise<Ran> | undefined
  const line = await new Promise<string>(resolve => {
    const onLine = (said: string): void => void (said.startsWith('next  ') && resolve(said))
    running = runCommand(words, { signal: stop.signal, onLine })
  })
  const [hint] = hintsIn({ stdout: line, stderr: '' })
  if (hint !== undefined) expect(await follow(hint)).toMatchObject({ code: 0 })
  else expect((await curl(line)).status).toBeLessThan(300)
  stop.abort()
  expect((await running!).code).toBe(0)
})

/** What a printed line of curl asks for. */
async function curl(line: string): Promise<Response> {
  const [, body, address] = /curl -d '([^']*)' -H 'content-type: application\/json' (\S+)$/.exec(
    line,
  )!
  return fetch(address!, {
    method: 'POST',
    body: body!,
    headers: { 'content-type': 'application/json' },
  })
}
