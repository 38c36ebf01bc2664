import { mathSuite } from './math.ts'
import type { GoldenSuite } from './suite.ts'

/** Every golden suite, in the order they are tried. */
export const suites: readonly GoldenSuite[] = [mathSuite]
