//! Nim in Rust: 21 stones, take 1 to 3 of them; the player who takes the last one wins.
//!
//! rustc --crate-type cdylib -O -o libnim.so nim.rs, or a crate with crate-type = ["cdylib"]

#[repr(C)]
pub struct State { stones: i8, to_play: i8 } // np.dtype([("stones", "i1"), ("to_play", "i1")])

#[no_mangle]
pub unsafe extern "C" fn plyzero_start(s: *mut State) { (*s).stones = 21 }
#[no_mangle]
pub unsafe extern "C" fn plyzero_play(s: *mut State, action: i32) {
    (*s).stones -= action as i8 + 1;
    (*s).to_play = 1 - (*s).to_play;
}
#[no_mangle]
pub unsafe extern "C" fn plyzero_outcome(s: *const State) -> i32 {
    if (*s).stones == 0 { 1 - (*s).to_play as i32 } else { -2 } // -2: the game goes on, -1: a draw
}
#[no_mangle]
pub unsafe extern "C" fn plyzero_legal(s: *const State, mask: *mut bool) {
    for action in 0..3usize.min((*s).stones as usize) { *mask.add(action) = true }
}
#[no_mangle]
pub unsafe extern "C" fn plyzero_observe(s: *const State, planes: *mut f32) {
    for stone in 0..(*s).stones as usize { *planes.add(stone) = 1.0 }
}
