import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Trained } from '../learn/learn/train.ts'
import { withDefaults } from '../run/settings/settings.ts'
import { taughtPath, trainLine, verdictLine } from './next-try.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-next-'))
const values = withDefaults({
  policy: [`embedded:${folder}`],
  environment: './shop.ts#shop',
  tasks: 200,
  maxTurns: 4,
  out: 'runs/0001',
})
const best = { step: 20, success: 0.5, folder: 'runs/0001/checkpoints/000020' }

function line(remedy: Trained['verdict']['remedy']): string {
  const verdict = { finding: 'learned', text: 'It learned.', remedy } as const
  return verdictLine({ verdict, best } as Trained, values).replaceAll(folder, 'models/shop')
}

it('a run ends with one command that can be pasted', () => {
  const again = 'espalier train --policy embedded:models/shop --environment ./shop.ts#shop'
  expect(line({ kind: 'more-tasks' })).toContain(
    `It learned. Try more tasks: npx ${again} --tasks 800 --max-turns 4`,
  )
  expect(line({ kind: 'rate', factor: 0.25 })).toContain(
    `${again} --tasks 200 --max-turns 4 --learning-rate 0.0001`,
  )
  expect(line({ kind: 'group' })).toContain(`${again} --tasks 200 --group 16 --max-turns 4`)
  expect(line({ kind: 'more-steps' })).toContain('--policy embedded:runs/0001/checkpoints/000020')
  expect(line({ kind: 'measure' })).toMatch(/espalier show runs\/0001$/)
})

it('a model that was taught too little is taught with more, as it was taught', () => {
  expect(line({ kind: 'teach-more' })).toMatch(/espalier teach --help$/)
  const flags = ['--environment', './shop.ts#shop', '--tasks', '500', '--out', 'models/shop']
  writeFileSync(taughtPath(folder), JSON.stringify({ flags }))
  expect(line({ kind: 'teach-more' })).toMatch(/--tasks 2000 --out models\/shop-more$/)
  const out = ['--demonstrations', './shop.ts#show', '--out', 'models/shop']
  writeFileSync(taughtPath(folder), JSON.stringify({ flags: out }))
  expect(line({ kind: 'teach-more' })).toMatch(/--tasks 2000 --out models\/shop-more --solved$/)
  writeFileSync(taughtPath(folder), JSON.stringify({ flags: ['--tasks', 'a.jsonl', ...out] }))
  expect(line({ kind: 'teach-more' })).toMatch(
    /Add lines to a.jsonl, and show them: npx espalier teach --tasks a.jsonl --demonstrations/,
  )
})

it('settings with their defaults are left out of a command', () => {
  const all = withDefaults({ filters: ['overlong', 'repetition'], budget: { seconds: 60 } })
  expect(trainLine(all, {})).toMatch(
    /train --filter overlong --filter repetition --budget '{"seconds":60}'$/,
  )
})
