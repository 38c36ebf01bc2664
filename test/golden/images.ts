import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  type ImageConfigs,
  type ImageLayout,
  ImageRefusedError,
  imageProcessor,
  type TokenRun,
} from '../../packages/text/src/images/index.ts'
import type { GoldenSuite } from './suite.ts'

interface Row {
  readonly family: string
  readonly width: number
  readonly height: number
  readonly layout?: ImageLayout
  readonly refused?: string
}

/** Layouts of images as transformers' processors gave them: size in, tokens out. */
export const imagesSuite: GoldenSuite = {
  name: 'images',
  matches: path => /(?:^|\/)layouts\.jsonl(?:\.gz)?$/.test(path),
  run(text, { root, name }) {
    const folder = join(root, dirname(name))
    const rows = text.split('\n').filter(line => line !== '')
    const failures = rows.flatMap((line, index) => {
      const problem = compare(JSON.parse(line) as Row, folder)
      return problem === undefined ? [] : [`row ${index + 1}: ${problem}`]
    })
    return { passed: rows.length - failures.length, failures }
  },
}

function configsIn(folder: string): ImageConfigs {
  const read = (file: string): unknown =>
    existsSync(join(folder, file))
      ? JSON.parse(readFileSync(join(folder, file), 'utf8'))
      : undefined
  return {
    preprocessor: read('preprocessor_config.json'),
    processor: read('processor_config.json'),
  }
}

function compare(
  { family, width, height, layout, refused }: Row,
  folder: string,
): string | undefined {
  const processor = imageProcessor(configsIn(join(folder, family)))
  const size = `${family} ${width} x ${height}`
  try {
    const found = JSON.stringify(joined(processor.layout({ width, height })))
    if (refused !== undefined) return `${size}: refused by transformers (${refused}), not here`
    return found === JSON.stringify(layout)
      ? undefined
      : `${size}: ${found}, not ${JSON.stringify(layout)}`
  } catch (error) {
    if (error instanceof ImageRefusedError && refused !== undefined) return undefined
    return `${size}: ${error}`
  }
}

/** Equal tokens that follow each other as one run. */
function joined(layout: ImageLayout): ImageLayout {
  const runs: TokenRun[] = []
  for (const [token, count] of layout) {
    const last = runs.at(-1)
    if (last?.[0] === token) runs[runs.length - 1] = [token, last[1] + count]
    else runs.push([token, count])
  }
  return runs
}
