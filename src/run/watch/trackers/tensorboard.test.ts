import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openTensorBoard } from './tensorboard.ts'

/** The records of an event file: their data, each behind its length and checksums. */
function recordsIn(bytes: Buffer): readonly Buffer[] {
  const records: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = Number(bytes.readBigUInt64LE(at))
    records.push(bytes.subarray(at + 12, at + 12 + length))
    at += 16 + length
  }
  return records
}

it('writes the curves of training as TensorBoard reads them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-curves-'))
  {
    await using curves = openTensorBoard(folder)
    curves.listen({ kind: 'curves', step: 300, values: { 'train/reward': 0.5 } })
  }
  const [name] = readdirSync(folder)
  expect(name).toMatch(/^events\.out\.tfevents\.\d+\./)
  const bytes = readFileSync(join(folder, name!))
  const [version, step] = recordsIn(bytes)
  expect(version!.toString('latin1')).toContain('brain.Event:2')
  // Step 300 as a varint, then the summary: its value has a tag and a float.
  expect(step!.subarray(9, 12)).toEqual(Buffer.from([0x10, 0xac, 0x02]))
  expect(step!.toString('latin1')).toContain('train/reward')
  expect(step!.readFloatLE(step!.length - 4)).toBe(0.5)
  // The checksum of the first length, which the package itself accepted (`npm run trainers`).
  expect([version!.length, bytes.readUInt32LE(8)]).toEqual([26, 769170194])
})
