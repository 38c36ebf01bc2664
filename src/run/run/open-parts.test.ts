import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { environment } from '../../engine/environments/environment.ts'
import { scripted } from '../../engine/policies/scripted.ts'
import { byteModel } from '../settings/model-source.ts'
import { newManifest } from '../store/manifest.ts'
import { createRun } from '../store/run-folder.ts'
import { openRollParts } from './open-parts.ts'
import { roll } from './roll.ts'

it('an attempt that outgrows the context of a model inside is cut there and scored, not failed', async () => {
  const long = environment({
    name: 'long',
    task: z.object({}),
    open: () => ({ opening: [{ role: 'user', content: 'pear '.repeat(2000) }] }),
    reward: { none: () => 0 },
  })
  const groups = []
  for await (const group of roll(long, [{}], { policy: 'embedded', group: 1 })) groups.push(group)
  expect(groups[0]?.members).toMatchObject([
    { trajectory: { outcome: { kind: 'truncated', limit: 'context' } }, reward: { total: 0 } },
  ])
})

it('[S1] a run that goes on another day writes the date on which it began', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-test-'))
  const [model, out] = [join(folder, 'model'), join(folder, 'run')]
  cpSync(byteModel, model, { recursive: true })
  const template = join(model, 'chat_template.jinja')
  writeFileSync(template, `{{- strftime_now('%Y-%m-%d') }}${readFileSync(template, 'utf8')}`)
  const manifest = { ...newManifest('roll', {}), started: '2026-02-03T12:00:00Z' }
  await (await createRun(out, manifest))[Symbol.asyncDispose]()
  const policy = scripted([])
  const resumed = { policy, model, out, resumes: true, threads: 1 }
  await using opened = await openRollParts('single-turn', undefined, resumed)
  const { renderer } = opened.parts
  const ids = renderer.render([{ role: 'user', content: 'When?' }], [])
  expect(renderer.decode(ids)).toContain('2026-02-03')
})
