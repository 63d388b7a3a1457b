export const reviewed = () => Promise.reject(new Error("none"));
