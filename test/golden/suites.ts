import { imagesSuite } from './images.ts'
import { mathSuite } from './math.ts'
import { parsersSuite } from './parsers.ts'
import { smollm2Suite } from './smollm2.ts'
import type { GoldenSuite } from './suite.ts'
import { tauBenchSuite } from './tau-bench.ts'
import { tau2Suite } from './tau2.ts'
import { templatesSuite } from './templates.ts'
import { tokenizersSuite } from './tokenizers.ts'

/** Every golden suite, in the order they are tried. */
export const suites: readonly GoldenSuite[] = [
  mathSuite,
  tauBenchSuite,
  tau2Suite,
  parsersSuite,
  templatesSuite,
  tokenizersSuite,
  imagesSuite,
  smollm2Suite,
]
