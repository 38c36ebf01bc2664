import type { StandardSchema } from '../../base/core/tool.ts'

/** Makes something when it is first asked for, once: loading a file should not make what few programs use. */
export function late<Made>(make: () => Made): () => Made {
  let made: { readonly value: Made } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/**
 * A task schema that is made when the first task is read: the schemas of all built-in environments would
 * take a good part of the time that loading the library takes.
 */
export function lateSchema<Output>(
  make: () => StandardSchema<unknown, Output>,
): StandardSchema<unknown, Output> {
  const made = late(make)
  return {
    get '~standard'() {
      return made()['~standard']
    },
  }
}
