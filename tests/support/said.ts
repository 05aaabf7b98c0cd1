// Texts of the agent's catalogue in assertions: a test names the code and the arguments that it is about.

/** An argument that the test does not know or is not about, such as a time. */
export const SOME = '…'

/** A pattern for a text of the catalogue, in which SOME stands for anything. */
export const said = (text: string): RegExp =>
  new RegExp(
    text
      .split(SOME)
      .map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
      .join('[^]*'),
  )
