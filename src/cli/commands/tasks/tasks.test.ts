import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { runCommand } from '../../../../test/command-line.ts'

const folder = mkdtempSync(join(tmpdir(), 'tasks, made '))
afterAll(() => rmSync(folder, { recursive: true }))
const at = (name: string): string => join(folder, name)
const linesOf = (name: string): readonly string[] =>
  readFileSync(at(name), 'utf8').trim().split('\n')

async function done(...words: readonly string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await runCommand([...words, '--json'])
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout.trim().split('\n').at(-1)!)
}

it('a set is made, split, cleared of what is held out, measured by a policy, and trained on', async () => {
  await done(
    'tasks',
    'make',
    '40',
    '--environment',
    'desk',
    '--seed',
    '3',
    '--out',
    at('all.jsonl'),
  )
  const all = linesOf('all.jsonl')
  expect(all).toHaveLength(40)

  await done(
    'tasks',
    'split',
    at('all.jsonl'),
    '--splits',
    'train=0.8,held-out=0.2',
    '--out',
    at('set.jsonl'),
  )
  const held = linesOf('set.held-out.jsonl')
  expect(linesOf('set.train.jsonl').length + held.length).toBe(40)

  // What leaks into the training set is left out again.
  const leaky = [...linesOf('set.train.jsonl'), held[0]!].join('\n')
  writeFileSync(at('leaky.jsonl'), `${leaky}\n`)
  writeFileSync(at('first.jsonl'), `${linesOf('set.train.jsonl')[0]}\n`)
  await done(
    'tasks',
    'dedupe',
    at('leaky.jsonl'),
    ...['--against', at('first.jsonl'), '--against', at('set.held-out.jsonl')],
    '--out',
    at('train.jsonl'),
  )
  const kept = linesOf('train.jsonl')
  expect(kept).not.toContain(held[0])
  expect(kept).not.toContain(linesOf('set.train.jsonl')[0])
  expect(kept.length).toBeGreaterThan(1)

  writeFileSync(at('few.jsonl'), `${kept.slice(0, 6).join('\n')}\n`)
  const limits = ['--max-turns', '8', '--max-new-tokens', '24']
  await done(
    'eval',
    '--policy',
    'embedded',
    '--environment',
    'desk',
    '--tasks',
    at('few.jsonl'),
    '--trials',
    '2',
    ...limits,
    '--out',
    at('eval'),
  )
  const measured = await done(
    ...['tasks', 'measure', at('eval'), '--against', at('set.held-out.jsonl')],
    ...['--keep', 'never,seldom,sometimes,often,always', '--out', at('hard.jsonl')],
  )
  expect(JSON.stringify(measured)).toContain('contrast')
  const hard = linesOf('hard.jsonl')
  expect(hard.length).toBeGreaterThan(0)

  await done(
    ...['train', '--policy', 'embedded', '--environment', 'desk', '--tasks', at('hard.jsonl')],
    ...['--held-out', at('set.held-out.jsonl'), '--steps', '1', '--tasks-per-step', '2'],
    ...['--group', '2', ...limits, '--out', at('run')],
  )
  const trained = JSON.parse(readFileSync(join(folder, 'run', 'run.json'), 'utf8'))
  expect(JSON.stringify(trained)).toContain('hard.jsonl')

  // The held-out tasks of training never become tasks to train on.
  const keep = ['--keep', 'never,always', '--out', at('leaked.jsonl')]
  const refused = await runCommand(['tasks', 'measure', at('run'), ...keep])
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('are held out')])
  expect(existsSync(at('leaked.jsonl'))).toBe(false)
  const desk = ['--policy', 'embedded', '--environment', 'desk']
  for (const words of [
    ['train', ...desk, '--tasks', at('run'), '--out', at('again')],
    ['train', ...desk, '--tasks', at('hard.jsonl'), '--held-out', at('run'), '--out', at('again')],
    ['roll', ...desk, '--tasks', at('run'), '--out', at('again')],
    ['tasks', 'dedupe', at('run'), '--out', at('again.jsonl')],
  ]) {
    const { code, stderr } = await runCommand(words)
    expect([words, code, stderr]).toEqual([words, 2, expect.stringContaining('run of training')])
  }
  expect([existsSync(at('again')), existsSync(at('again.jsonl'))]).toEqual([false, false])
}, 300_000)

it('no file that is there already is written over', async () => {
  const made = ['tasks', 'make', '2', '--environment', 'desk', '--out', at('once.jsonl')]
  await done(...made)
  const before = linesOf('once.jsonl')
  writeFileSync(at('parts.held-out.jsonl'), 'mine\n')
  for (const words of [
    made,
    ['tasks', 'dedupe', at('once.jsonl'), '--out', at('once.jsonl')],
    ['tasks', 'split', at('once.jsonl'), '--out', at('parts.jsonl')],
  ]) {
    const { code, stderr } = await runCommand(words)
    expect([code, stderr]).toEqual([2, expect.stringMatching(/jsonl is there already: remove it/)])
  }
  expect(linesOf('once.jsonl')).toEqual(before)
  expect(linesOf('parts.held-out.jsonl')).toEqual(['mine'])
  expect(existsSync(at('parts.train.jsonl'))).toBe(false)
})

it('what is not there, and verbs that are none, are told as misuse', async () => {
  expect((await runCommand(['tasks', 'sort', 'x'])).code).toBe(2)
  const missing = await runCommand(['tasks', 'dedupe', at('none.jsonl'), '--out', at('o.jsonl')])
  expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining('none.jsonl')])
})

it('traces become tasks in whose worlds old calls get old results, and new calls end the attempt', async () => {
  const call = (id: string, at: string) => ({
    type: 'tool_call',
    id,
    name: 'look',
    arguments: { at },
  })
  const result = (id: string, response: string) => ({
    role: 'tool',
    parts: [{ type: 'tool_call_response', id, response }],
  })
  const said = (role: string, content: string) => ({ role, parts: [{ type: 'text', content }] })
  const input = [
    said('user', 'Is the door open?'),
    { role: 'assistant', parts: [call('c1', 'door'), call('c2', 'window')] },
    result('c1', 'open'),
    result('c2', 'shut'),
    said('assistant', 'Open.'),
    said('user', 'And the window?'),
  ]
  const look = {
    name: 'look',
    parameters: { type: 'object', properties: { at: { type: 'string' } } },
  }
  const attributes = {
    'gen_ai.input.messages': JSON.stringify(input),
    'gen_ai.output.messages': JSON.stringify([said('assistant', 'Shut.')]),
    'gen_ai.tool.definitions': JSON.stringify([look]),
  }
  writeFileSync(at('traces.jsonl'), `${JSON.stringify({ traceId: 't', attributes })}\n`)
  const recorded = ['tasks', 'record', at('traces.jsonl'), '--out', at('recorded.jsonl')]
  expect(await done(...recorded)).toMatchObject({ tasks: 2 })
  const [first, second] = linesOf('recorded.jsonl').map(line => JSON.parse(line))
  expect(first).toMatchObject({
    id: 't#1',
    answer: 'Open.',
    calls: [{ output: 'open' }, { output: 'shut' }],
  })
  expect(second).toMatchObject({ id: 't#2', answer: 'Shut.', calls: [] })

  const asks = (place: string) =>
    `<tool_call>\n{"name": "look", "arguments": {"at": "${place}"}}\n</tool_call>`
  const answers = [asks('window'), 'Open.', asks('roof')]
  const lines = answers.map((text, index) => ({ text, task: index < 2 ? 't#1' : 't#2' }))
  writeFileSync(at('answers.jsonl'), lines.map(line => `${JSON.stringify(line)}\n`).join(''))
  const rolled = await runCommand([
    ...['roll', '--policy', `scripted:${at('answers.jsonl')}`, '--environment', 'recorded'],
    ...['--tasks', at('recorded.jsonl'), '--group', '1', '--out', at('recorded'), '--json'],
  ])
  expect(rolled.code, rolled.stderr).toBe(0)
  const shown = await Promise.all(
    ['t#1/0/0', 't#2/0/0'].map(async id => (await runCommand(['show', at('recorded'), id])).stdout),
  )
  expect(shown[0]).toMatch(/shut/)
  expect(shown[0]).toContain('reward 1 (right 1, seen 1)')
  expect(shown[1]).toContain('never made when the conversation was recorded')
})
