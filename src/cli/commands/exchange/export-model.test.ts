import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runCommand } from '../../../../test/command-line.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-export-model-'))
const at = (name: string): string => join(folder, name)

it('writes the model of a training run, and says of other runs that they have none', async () => {
  const desk = ['--policy', 'embedded', '--environment', 'desk', '--tasks', '2', '--group', '2']
  const trained = await runCommand(['train', ...desk, '--steps', '1', '--out', at('trained')])
  expect(trained.code, trained.stderr).toBe(0)
  const to = ['--to', 'safetensors', '--out', at('model')]
  const written = await runCommand(['export-model', at('trained'), ...to])
  expect(written.code, written.stderr).toBe(0)
  expect(existsSync(join(at('model'), 'model.safetensors'))).toBe(true)
  const again = await runCommand(['export-model', at('trained'), ...to])
  expect(again.code).toBe(2)
  expect(again.stderr).toContain('config.json is there already: remove it or choose another --out')
  await runCommand(['roll', ...desk, '--out', at('rolled')])
  const refused = await runCommand(['export-model', at('rolled'), ...to])
  expect(refused.code).toBe(2)
  expect(refused.stderr).toContain('has no model: only training runs keep checkpoints of one')
})
