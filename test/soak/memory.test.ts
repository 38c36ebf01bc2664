import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const rollouts = process.env.ESPALIER_SOAK ? 100_000 : 4000

it(`memory stays flat over ${rollouts} short rollouts`, { timeout: 1_200_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-soak-'))
  const words = ['--expose-gc', '--import', 'tsx', 'test/soak/roll-many.ts']
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    [...words, String(rollouts), join(folder, 'run')],
    { encoding: 'utf8', maxBuffer: 1 << 24 },
  )
  rmSync(folder, { recursive: true, force: true })
  expect(status, stderr).toBe(0)
  const lines = stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as { megabytes: number })
  expect(lines.length).toBeGreaterThanOrEqual(18)
  const mean = (from: number, to: number): number => {
    const part = lines.slice(from, to).map(({ megabytes }) => megabytes)
    return part.reduce((sum, each) => sum + each, 0) / part.length
  }
  // Ids of tasks are kept to find doubled ones: about 100 bytes for each group.
  const growth = mean(-5, lines.length) - mean(4, 9)
  expect(growth).toBeLessThan(4 + (rollouts / 8) * 0.0002)
})
