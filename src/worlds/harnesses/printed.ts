import type { z } from 'zod'
import { parseBounded } from '../../base/core/process/bounded.ts'

/** The last line of a program's output that is JSON of this form. */
export function lastJson<T>(output: string, schema: z.ZodType<T>): T | undefined {
  for (const line of output.trimEnd().split('\n').reverse()) {
    const read = jsonIn(line, schema)
    if (read !== undefined) return read
  }
  return undefined
}

/** A text that is JSON of this form. */
export function jsonIn<T>(text: string, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.safeParse(parseBounded(text)).data
  } catch {
    return undefined
  }
}
