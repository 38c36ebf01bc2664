import { type Evaluated, type MeasureOptions, openMeasure } from './evaluate.ts'
import { openRunReader } from './store.ts'

/** Measures what a run folder holds, however often it was interrupted. */
export async function measureRun(run: string, options: MeasureOptions = {}): Promise<Evaluated> {
  const measure = openMeasure(options)
  await using reader = await openRunReader(run)
  for await (const { group } of reader.groups()) measure.add(group)
  return measure.result()
}
