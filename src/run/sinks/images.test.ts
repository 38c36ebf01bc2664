import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { openSeeingRenderer } from '../../../test/rolling.ts'
import { tokenSample } from '../../../test/token-sample.ts'
import { type Policy, plainCapabilities } from '../../base/core/policy.ts'
import { random } from '../../base/math/random.ts'
import { shownImages } from '../../doors/view/answer/shown-images.ts'
import { chart } from '../../worlds/pictures/chart.ts'
import { maze } from '../../worlds/pictures/maze.ts'
import { exportRun } from '../exchange/export.ts'
import { roll } from '../run/roll.ts'

const folder = mkdtempSync(join(tmpdir(), 'seen-'))
afterAll(() => rmSync(folder, { recursive: true }))

const model = await openSeeingRenderer()
const policy: Policy = {
  name: 'wanderer',
  capabilities: { ...plainCapabilities, images: true },
  async sample({ prompt, seed, key }) {
    const word = ['up', 'down', 'left', 'right'][(seed + key.turn) % 4]
    const ids = model.tokenizer.encode(`${word}<|im_end|>`)
    return tokenSample(ids, { prompt: prompt.ids.length, next: random({ high: 1, low: seed }) })
  },
  [Symbol.asyncDispose]: async () => {},
}
const seen = join(folder, 'maze')
const limits = { turns: 3 }
for await (const _ of roll(maze(), 1, { policy, model, group: 2, out: seen, limits }));
const read = join(folder, 'chart')
for await (const _ of roll(chart(), 1, { policy, model, group: 2, out: read, limits }));

async function exported(run: string, to: string) {
  const out = join(folder, `${to}.jsonl`)
  await exportRun(run, { to, out })
  const rows = readFileSync(out, 'utf8').trimEnd().split('\n')
  return { rows: rows.map(row => JSON.parse(row)), images: readdirSync(`${out}.images`) }
}

it('an export takes the images of its rows with it, in the form of its trainer', async () => {
  const fields = {
    jsonl: (row: { images: { file: string }[] }) => row.images.map(({ file }) => file),
    verl: (row: { multi_modal_data: { images: string[] } }) => row.multi_modal_data.images,
    slime: (row: { multimodal_inputs: { images: string[] } }) => row.multimodal_inputs.images,
    skyrl: (row: { images: string[] }) => row.images,
  }
  for (const [to, filesOf] of Object.entries(fields)) {
    const { rows, images } = await exported(seen, to)
    for (const row of rows) {
      const files = filesOf(row)
      expect(files.length).toBeGreaterThan(0)
      expect(files.every(file => images.includes(file.replace(`${to}.jsonl.images/`, '')))).toBe(
        true,
      )
    }
  }
  const { rows } = await exported(read, 'trl')
  expect(rows[0].images).toHaveLength(1)
})

it('a format without a place for images refuses them, with the reason', async () => {
  for (const to of ['rllm', 'tinker', 'verifiers', 'openai-sft'])
    await expect(exported(seen, to)).rejects.toThrow(/was shown images, which have no place in it/)
  await expect(exported(seen, 'trl')).rejects.toThrow(/behind the prompt of \d+/)
})

it('a viewer is given the images of a trajectory, and none that are not there', async () => {
  const { rows } = await exported(seen, 'jsonl')
  const images = await shownImages(seen, rows[0].messages)
  expect(Object.values(images)[0]).toMatch(/^data:image\/png;base64,iVBOR/)
  expect(await shownImages(read, rows[0].messages)).toEqual({})
})
