import type { z } from 'zod'
import type { Environment } from '../../base/core/environment.ts'

/** An environment that can be opened by name. */
export interface EnvironmentFactory {
  /** One sentence for people. */
  readonly about: string
  /** Reads the options, whose values are texts; `variant` is what a bare first item gives. */
  readonly options: z.ZodObject
  /** Opens it with options that `options` has read. */
  open(options: unknown): Environment | Promise<Environment>
}

/** Loads a factory when its environment is named. */
export type LateFactory = () => Promise<EnvironmentFactory>

/** Makes a factory, with the type of its options inferred from their schema. */
export function environmentFactory<Options extends z.ZodObject>(factory: {
  readonly about: string
  readonly options: Options
  readonly open: (options: z.output<Options>) => Environment | Promise<Environment>
}): EnvironmentFactory {
  return { ...factory, open: options => factory.open(options as z.output<Options>) }
}
