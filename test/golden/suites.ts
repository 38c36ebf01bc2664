import { mathSuite } from './math.ts'
import { parsersSuite } from './parsers.ts'
import type { GoldenSuite } from './suite.ts'
import { tauBenchSuite } from './tau-bench.ts'
import { templatesSuite } from './templates.ts'
import { tokenizersSuite } from './tokenizers.ts'

/** Every golden suite, in the order they are tried. */
export const suites: readonly GoldenSuite[] = [
  mathSuite,
  tauBenchSuite,
  parsersSuite,
  templatesSuite,
  tokenizersSuite,
]
