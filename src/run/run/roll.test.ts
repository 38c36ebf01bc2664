import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { calculator } from '../../engine/environments/built-in/calculator.ts'
import { withFork } from '../../engine/environments/fork.ts'
import { scripted } from '../../testing.ts'
import { exportRun } from '../exchange/export.ts'
import { roll } from './roll.ts'

it('a run that was begun without settings exports its tokens as its options weigh them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-roll-'))
  const out = join(folder, 'run')
  const [live, later] = [join(folder, 'live.jsonl'), join(folder, 'later.jsonl')]
  const call =
    '<tool_call>\n{"name": "calculate", "arguments": {"expression": "1+1"}}\n</tool_call>'
  const rolling = roll(withFork(calculator()), [{ prompt: '1+1?', answer: '2' }], {
    policy: await scripted([call, call, '2', '3', '2', '3']),
    strategy: 'tree',
    leaves: 4,
    group: 1,
    weighting: 'hard',
    sinks: [{ to: 'jsonl', out: live }],
    out,
  })
  for await (const _ of rolling);
  await exportRun(out, { to: 'jsonl', out: later })
  const written = readFileSync(later, 'utf8')
  expect(readFileSync(live, 'utf8')).toBe(written)
  expect(written).toContain('"share":0.5')
})
