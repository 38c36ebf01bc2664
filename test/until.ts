/** Waits until another process has reached a state; returns false if `isOver` says that it never will. */
export async function until(
  isSo: () => boolean | Promise<boolean>,
  isOver: () => boolean = () => false,
): Promise<boolean> {
  while (!(await isSo())) {
    if (isOver()) return false
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  return true
}
