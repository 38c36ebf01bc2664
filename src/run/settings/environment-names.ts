/** What stands between the names of several environments, if they are one text. */
const between = ' + '

/** Several environments as one name, as runs keep it. */
export function joinEnvironments(names: readonly string[]): string {
  return names.join(between)
}

/** The environments that a name stands for. */
export function splitEnvironments(name: string): readonly string[] {
  return name.split(between)
}
