import { builtinNames } from './builtins.ts'
import { addBuiltins } from './compile/expression.ts'
import { Modules } from './imports.ts'
import { standardLibrary } from './library/standard.ts'
import type { Module } from './values.ts'

/** What a program needs from outside. */
export interface ProgramOptions {
  /** The source of a module by its dotted name, or `undefined` if there is none. */
  source(name: string): string | undefined
  /** Modules written in TypeScript beside those of Python's library. */
  readonly modules?: readonly Module[]
  /** 32 random hexadecimal digits. */
  randomHex(): string
}

/**
 * Opens a program written in the part of Python that is run here. Nothing of the machine can be
 * reached from it: no file, no network, no module but those given.
 */
export function loadProgram({ source, modules = [], randomHex }: ProgramOptions): Modules {
  addBuiltins(builtinNames)
  const library = new Map(standardLibrary(randomHex))
  for (const module of modules) library.set(module.name, module)
  return new Modules({ source, library })
}
