import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { OnCard } from '../../../../test/gpu/on-card.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-card-'))
let found: OnCard

/** A driver that plays a graphics card on the processor, as a browser without one has it. */
function unpackDriver(): NodeJS.ProcessEnv {
  const chromium = new URL('../../../../node_modules/@sparticuz/chromium/bin/', import.meta.url)
  const packed = readFileSync(new URL('swiftshader.tar.br', chromium))
  spawnSync('tar', ['-x', '-C', folder], { input: brotliDecompressSync(packed) })
  const driver = join(folder, 'vk_swiftshader_icd.json')
  return { LD_LIBRARY_PATH: folder, VK_ICD_FILENAMES: driver, VK_DRIVER_FILES: driver }
}

afterAll(() => rm(folder, { recursive: true }))

/** Devices sum in other orders. */
function expectNear(numbers: readonly number[], wanted: readonly number[]): void {
  const far = numbers.map((each, at) => Math.abs(each - wanted[at]!))
  expect(Math.max(...far)).toBeLessThan(1e-3)
}

const idsOf = (list: readonly { readonly id: number }[]) => list.map(({ id }) => id)

/** The driver is built for these machines alone. */
const hasDriver = process.platform === 'linux' && process.arch === 'x64'

describe.skipIf(!hasDriver)('a graphics card', () => {
  beforeAll(() => {
    const program = fileURLToPath(new URL('../../../../test/gpu/on-card.ts', import.meta.url))
    const env = { ...process.env, ...unpackDriver() }
    const run = spawnSync(process.execPath, ['--import', 'tsx', program], { env, encoding: 'utf8' })
    expect(run.status, run.stderr).toBe(0)
    found = JSON.parse(run.stdout) as OnCard
  }, 300_000)

  it('scores and learns as the processor does', () => {
    for (const { cpu, gpu } of Object.values(found.families)) {
      expect(gpu.device).toContain('played by the processor')
      expectNear(gpu.scored, cpu.scored)
      expectNear([gpu.norm / cpu.norm], [1])
    }
  })

  it('draws what the processor draws, and within the same limits where it draws in another order', () => {
    const { cpu, gpu } = found.families.llama!
    gpu.samples.forEach(({ way, ids, logprobs, top }, index) => {
      const wanted = cpu.samples[index]!
      if ('topK' in way || 'topP' in way) {
        expect(ids.every((id, at) => idsOf(top![at]!).includes(id))).toBe(true)
        return
      }
      expect(ids).toEqual(wanted.ids)
      expectNear(logprobs, wanted.logprobs)
      expect(top!.map(idsOf)).toEqual(wanted.top!.map(idsOf))
    })
  })

  it('goes on behind the last step when it was lost, with the same samples and the same gradient', () => {
    const { told, ...lost } = found.lost
    const { told: nothing, ...kept } = found.kept
    expect(lost).toEqual(kept)
    expect(nothing).toEqual([])
    expectNear(kept.scored, found.families.llama!.cpu.scored.slice(19, 49))
    expect(told).toHaveLength(2)
    expect(told[0]).toMatch(/was lost .* goes on behind the last step/)
  })

  it('is not taken by auto if the processor plays it', () => {
    expect(found.auto).toBe('the processor, 1 thread')
  })
})
